"""The wallet's file: no other user reads it, and no write loses a part of it."""

from pathlib import Path

import pytest

from sallyport.base.errors import CredentialError, StartError
from sallyport.did.crypto.documents import resolve
from sallyport.did.crypto.keys import CURVES
from sallyport.did.holder.wallet import WalletFile, new_key, read, write


def a_wallet(of: str = "Ed25519", **changes: str) -> WalletFile:
    """A wallet with a new key of that curve; with fields changed."""
    did, key = new_key(of)
    fields = {"service": "https://s.example", "email": "a@b.example", "wallet_key": "wk_", "token": "sp_", "did": did}
    return WalletFile.model_validate({**fields, "wallet_id": 7, "curve": of, "key": key, **changes})


@pytest.mark.parametrize("curve", CURVES)
def test_what_is_written_is_read(tmp_path: Path, curve: str) -> None:
    """With mode 0600, and its key signs for its DID."""
    path, wallet = tmp_path / "wallet", a_wallet(curve)
    write(path, wallet)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read(path) == wallet
    signer = wallet.signer()
    assert signer is not None
    signature = signer.key.sign(b"octets")
    assert resolve(wallet.did).methods[0].key.verify(signature, b"octets")
    assert a_wallet(key="", curve="").signer() is None


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    """A key that is there is not lost by a second init."""
    path = tmp_path / "wallet"
    write(path, a_wallet())
    before = path.read_bytes()
    with pytest.raises(StartError):
        write(path, a_wallet())
    assert path.read_bytes() == before


def test_a_file_that_is_no_wallet(tmp_path: Path) -> None:
    """One that is not there, that others may read, or that holds something else; what it holds is not repeated."""
    path = tmp_path / "wallet"
    with pytest.raises(StartError, match="wallet init"):
        read(path)
    with pytest.raises(StartError):
        write(tmp_path / "no folder" / "wallet", a_wallet())
    write(path, a_wallet())
    path.chmod(0o640)
    with pytest.raises(StartError, match="read by other users"):
        read(path)
    path.chmod(0o600)
    path.write_text('{"wallet_key": "wk_secret"}')
    with pytest.raises(StartError) as error:
        read(path)
    assert "wk_secret" not in str(error.value)
    with pytest.raises(CredentialError):
        a_wallet(curve="P-521").signer()
