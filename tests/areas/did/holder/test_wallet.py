"""The file of a wallet: its permissions, and how it is protected against loss."""

from pathlib import Path

import pytest

from sallyport.areas.did.crypto.documents import resolve
from sallyport.areas.did.crypto.encoding import CURVES
from sallyport.areas.did.holder.wallet import WalletFile, new_key, read, write
from sallyport.base.errors import CredentialError, StartError


def new_wallet(of: str = "Ed25519", **changes: str) -> WalletFile:
    """Return a wallet with a new key of this curve. The given fields are changed."""
    did, key = new_key(of)
    fields = {"service": "https://s.example", "email": "a@b.example", "wallet_key": "wk_", "token": "sp_", "did": did}
    return WalletFile.model_validate({**fields, "wallet_id": 7, "curve": of, "key": key, **changes})


@pytest.mark.parametrize("curve", CURVES)
def test_a_saved_wallet_is_read(tmp_path: Path, curve: str) -> None:
    """The saved file has mode 0600. The key that is read from it signs for the DID."""
    path, wallet = tmp_path / "wallet", new_wallet(curve)
    write(path, wallet)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read(path) == wallet
    signer = wallet.signer()
    assert signer is not None
    signature = signer.key.sign(b"octets")
    assert resolve(wallet.did).methods[0].key.verify(signature, b"octets")
    assert new_wallet(key="", curve="").signer() is None


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    """A second init does not overwrite the file with the key."""
    path = tmp_path / "wallet"
    write(path, new_wallet())
    before = path.read_bytes()
    with pytest.raises(StartError):
        write(path, new_wallet())
    assert path.read_bytes() == before


def test_an_unusable_file_is_refused(tmp_path: Path) -> None:
    """A file is refused if it is missing, readable by other users, or not a wallet. The message does not contain the
    contents of the file.
    """
    path = tmp_path / "wallet"
    with pytest.raises(StartError, match="wallet init"):
        read(path)
    with pytest.raises(StartError):
        write(tmp_path / "no folder" / "wallet", new_wallet())
    write(path, new_wallet())
    path.chmod(0o640)
    with pytest.raises(StartError, match="read by other users"):
        read(path)
    path.chmod(0o600)
    path.write_text('{"wallet_key": "wk_secret"}')
    with pytest.raises(StartError) as error:
        read(path)
    assert "wk_secret" not in str(error.value)
    with pytest.raises(CredentialError):
        new_wallet(curve="P-521").signer()
