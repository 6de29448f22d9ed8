"""The keys that sign desired states (Ed25519, RFC 8032). Each domain has one key, which is generated when the first
machine of the domain registers.

A rotation replaces the key. The former key is kept until the next rotation, for agents that have not received the new
key yet.
"""

from dataclasses import dataclass

from sallyport.base.errors import SecretError
from sallyport.store.model import Tx
from sallyport.store.vault import Vault


@dataclass(frozen=True, slots=True)
class _Signer:
    domain_id: int
    private_key: bytes
    public_key: bytes = b""
    former_public: bytes | None = None
    former_private: bytes | None = None


def public_key(tx: Tx, vault: Vault, domain_id: int) -> bytes:
    """Return the public key that verifies the desired states of a domain (32 octets). Generate a key pair if the domain
    has none."""
    known = tx.value(bytes, "select public_key from agent_signers where domain_id = :d", d=domain_id)
    if known is not None:
        return known
    public, private = _new()
    sealed = vault.seal(private, _identity(domain_id))
    tx.insert("agent_signers", ("domain_id", "public_key", "private_key"), [(domain_id, public, sealed)])
    return public


def of_instance(tx: Tx, instance_id: int) -> bytes:
    """Return the public key that verifies the desired states of a machine (32 octets), or empty octets if the domain
    has no key."""
    sql = "select public_key from agent_signers where domain_id = (select domain_id from agents where instance_id = :i)"
    return tx.value(bytes, sql, i=instance_id) or b""


def rotate(tx: Tx, vault: Vault, domain_id: int) -> bool:
    """Replace the key of a domain. Return False if the domain has no key yet. Raises SecretError if the vault cannot
    open the present key."""
    signer = _found(tx, domain_id)
    if signer is None:
        return False
    public, private = _new()
    tx.execute(
        "update agent_signers set public_key = :public, private_key = :private, former_public = :former_public, "
        "former_private = :former_private where domain_id = :d",
        public=public,
        private=vault.seal(private, _identity(domain_id)),
        former_public=signer.public_key,
        former_private=vault.seal(_open(vault, signer), _former_identity(domain_id)),
        d=domain_id,
    )
    return True


def sign(tx: Tx, vault: Vault, domain_id: int, octets: bytes, *, by: bytes) -> bytes:
    """Sign octets with a key of a domain, and return the signature (64 octets).

    by: the public key with which the agent verifies states. If it is the former public key of the domain, sign with the
    former key, otherwise with the present key. Raises SecretError if the domain has no key, or if the vault cannot open
    the key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signer = _found(tx, domain_id)
    if signer is None:
        raise SecretError(f"domain {domain_id} has no key to sign desired states with")
    if signer.former_private is not None and by == signer.former_public:
        private = vault.open(signer.former_private, _former_identity(domain_id))
    else:
        private = _open(vault, signer)
    return Ed25519PrivateKey.from_private_bytes(private).sign(octets)


def _found(tx: Tx, domain_id: int) -> _Signer | None:
    sql = (
        "select domain_id, private_key, public_key, former_public, former_private from agent_signers "
        "where domain_id = :d"
    )
    return tx.one(_Signer, sql, d=domain_id)


def _new() -> tuple[bytes, bytes]:
    """Return a new key pair: (public key, private key)."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    return key.public_key().public_bytes_raw(), key.private_bytes_raw()


def _open(vault: Vault, signer: _Signer) -> bytes:
    return vault.open(signer.private_key, _identity(signer.domain_id))


def _identity(domain_id: int) -> str:
    return f"agent_signers/{domain_id}/key"


def _former_identity(domain_id: int) -> str:
    return f"agent_signers/{domain_id}/former"
