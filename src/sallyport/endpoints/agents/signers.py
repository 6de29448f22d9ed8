"""The keys by which states are signed: one for each domain, made when its first machine registers (RFC 8032)."""

from dataclasses import dataclass

from sallyport.base.errors import SecretError
from sallyport.store.model import Tx
from sallyport.store.vault import Vault


@dataclass(frozen=True, slots=True)
class _Signer:
    domain_id: int
    private_key: bytes


def public_key(tx: Tx, vault: Vault, domain_id: int) -> bytes:
    """The 32 octets by which agents check the states of a domain; the key is made where there is none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    known = tx.value(bytes, "select public_key from agent_signers where domain_id = :d", d=domain_id)
    if known is not None:
        return known
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    sealed = vault.seal(key.private_bytes_raw(), _identity(domain_id))
    tx.insert("agent_signers", ("domain_id", "public_key", "private_key"), [(domain_id, public, sealed)])
    return public


def sign(tx: Tx, vault: Vault, domain_id: int, octets: bytes) -> bytes:
    """The signature of a domain, 64 octets. SecretError: it has no key, or the key does not open."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signer = tx.one(_Signer, "select domain_id, private_key from agent_signers where domain_id = :d", d=domain_id)
    if signer is None:
        raise SecretError(f"domain {domain_id} has no key to sign states with")
    return Ed25519PrivateKey.from_private_bytes(_open(vault, signer)).sign(octets)


def check_key(tx: Tx, vault: Vault) -> None:
    """Open one, if there is any. SecretError: the store was sealed under another key."""
    signer = tx.one(_Signer, "select domain_id, private_key from agent_signers order by domain_id limit 1")
    if signer is not None:
        _open(vault, signer)


def _open(vault: Vault, signer: _Signer) -> bytes:
    return vault.open(signer.private_key, _identity(signer.domain_id))


def _identity(domain_id: int) -> str:
    return f"agent_signers/{domain_id}/key"
