"""The keys of holders that are kept here: sealed under the walletKey, and that under the master key."""

from sallyport.base.errors import Conflict, NotFound, SecretError
from sallyport.base.secret import Secret
from sallyport.did.crypto.jws import Signer
from sallyport.did.crypto.keys import PrivateKey, from_multikey
from sallyport.did.dids import repo
from sallyport.did.dids.model import Kind
from sallyport.did.wallets.key import open_with
from sallyport.store.model import Tx
from sallyport.store.vault import Vault


def holders_signer(tx: Tx, vault: Vault, domain_id: int, did: str, wallet_key: str) -> Signer:
    """A holder's key. NotFound: the domain has no such holder, or its wallet keeps the key. Conflict: it was sealed
    under another walletKey. SecretError: or another master key."""
    record = repo.get(tx, domain_id, did, Kind.USER)
    row = None if record is None else repo.active_key(tx, record.id)
    if row is None or row.sealed is None:
        raise NotFound("no key of that holder is kept here")
    identity = repo.identity(row.id)
    sealed = vault.open(row.sealed, identity)
    try:
        clear = open_with(wallet_key, sealed, identity)
    except SecretError:
        raise Conflict("the holder's key was sealed under another walletKey: a new holder DID is needed") from None
    return Signer(row.method_id, PrivateKey(from_multikey(row.multikey).curve, Secret(clear)))
