"""The wallet's file: JSON, mode 0600, replaced as a whole."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, ValidationError

from sallyport.base.errors import CredentialError, StartError
from sallyport.base.model import Model
from sallyport.base.secret import Secret
from sallyport.did.crypto.documents import key_did, resolve
from sallyport.did.crypto.encoding import from_base64url, to_base64url
from sallyport.did.crypto.jws import Signer
from sallyport.did.crypto.keys import CURVES, PrivateKey

DEFAULT = Path("~/.sallyport-wallet.json")
Text = Annotated[str, Field(min_length=1, max_length=4096)]


class WalletFile(Model):
    """What a wallet knows. key: of its own, `curve` and the octets in base64url; empty where the service keeps it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    service: Text
    email: Text
    wallet_id: int
    wallet_key: Text
    token: Text
    did: Text
    curve: str = ""
    key: str = ""

    def signer(self) -> Signer | None:
        """The wallet's own key; None: the service keeps it. CredentialError: the file was tampered with."""
        if not self.key:
            return None
        curve = CURVES.get(self.curve)
        if curve is None:
            raise CredentialError("the wallet's key is of no curve that is known here")
        return Signer(resolve(self.did).methods[0].id, PrivateKey(curve, Secret(from_base64url(self.key))))


def new_key(curve: str) -> tuple[str, str]:
    """A did:key of that curve, and the private octets in base64url."""
    key = PrivateKey.new(CURVES[curve])
    return key_did(key.public), to_base64url(key.octets.reveal())


def read(path: Path) -> WalletFile:
    """StartError: there is none, others may read it, or it is none."""
    try:
        with path.expanduser().open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise StartError(f"{path} can be read by others: chmod 600 it, and think about who has")
            return WalletFile.model_validate_json(file.read())
    except FileNotFoundError:
        raise StartError(f"{path} is not there: `sallyport wallet init` makes it") from None
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
    except ValidationError:
        raise StartError(f"{path} is no wallet's file") from None


def write(path: Path, wallet: WalletFile) -> None:
    """Make the file, which must not be there yet: a key is not to be lost. StartError."""
    try:
        descriptor = os.open(path.expanduser(), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(wallet.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(descriptor)
    except FileExistsError:
        raise StartError(f"{path} is there already: another --file, or remove it and the key in it") from None
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
