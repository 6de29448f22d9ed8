"""The file of a wallet (JSON with mode 0600), and the operations that the wallet calls over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from uuid import uuid4

import httpx
from pydantic import ConfigDict, Field, ValidationError

from sallyport.areas.did.crypto import jws, vc
from sallyport.areas.did.crypto.documents import key_did, resolve
from sallyport.areas.did.crypto.encoding import CURVES, from_base64url, to_base64url
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.keys import PrivateKey
from sallyport.areas.did.presentations import definition
from sallyport.base.clock import now_us
from sallyport.base.errors import CredentialError, NotFound, StartError
from sallyport.base.model import Model
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON, Row
from sallyport.host.owner import as_owner
from sallyport.shell.command import entries

DEFAULT: Final = Path("~/.sallyport-wallet.json")
TIMEOUT_S: Final = 30.0
MAX_SIZE: Final = 8 << 20
"""Maximum size of an answer, in octets."""
Text = Annotated[str, Field(min_length=1, max_length=4096)]


class WalletFile(Model):
    """The content of a wallet's file. key: the private key of the wallet on `curve`, in base64url; empty if the
    service keeps the key."""

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
        """Return a signer with the wallet's own key, or None if the service keeps the key. Raises CredentialError if
        the key in the file is not valid."""
        if not self.key:
            return None
        curve = CURVES.get(self.curve)
        if curve is None:
            raise CredentialError("the wallet's key has a curve that is not supported")
        return Signer(resolve(self.did).methods[0].id, PrivateKey(curve, Secret(from_base64url(self.key))))


def new_key(curve: str) -> tuple[str, str]:
    """Generate a key. Return its did:key, and the octets of the private key in base64url."""
    key = PrivateKey.new(CURVES[curve])
    return key_did(key.public), to_base64url(key.octets.reveal())


def read(path: Path) -> WalletFile:
    """Read a wallet's file. Raises StartError if the file does not exist, if other users can read the file, or if it
    is not a wallet's file."""
    try:
        with path.expanduser().open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise StartError(f"{path} can be read by other users, who may know its key: run chmod 600 on it")
            return WalletFile.model_validate_json(file.read())
    except FileNotFoundError:
        raise StartError(f"{path} does not exist: create it with `sallyport wallet init`") from None
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
    except ValidationError:
        raise StartError(f"{path} is not the file of a wallet: create one with `sallyport wallet init`") from None


def write(path: Path, wallet: WalletFile) -> None:
    """Create a wallet's file. Raises StartError if the file cannot be written or already exists. An existing file is
    never replaced, because its key would be lost."""
    target = path.expanduser()
    try:
        with as_owner(target.parent):
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(wallet.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(descriptor)
    except FileExistsError:
        raise StartError(f"{path} already exists: give another --file, or delete the file with its key") from None
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None


class NoAnswer(StartError):
    """The error for a service that does not answer now. The service may be restarting."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A presentation request for the wallet. pending: the number of all open requests for the wallet. This request is
    counted too."""

    id: int
    pending: int
    purpose: str
    endpoint: str
    verifier: str
    nonce: str
    definition: str


class Remote:
    """The wallet's client of the service's HTTP API.

    Its methods raise NotFound if the service answers with HTTP status 404. They raise StartError if the service does
    not answer, or refuses a request for another reason.
    """

    def __init__(self, wallet: WalletFile, client: httpx.Client) -> None:
        self._wallet = wallet
        self._client = client

    def credentials(self) -> list[Row]:
        """Return the credentials that the wallet has accepted, or that are assigned to it."""
        body: Row = {"email": self._wallet.email, "walletKey": self._wallet.wallet_key}
        return entries(self._ask("/api/v1/walletService/pollCredentials", body).get("credentials"))

    def acknowledge(self, credential_id: int, *, accept: bool) -> str:
        """Accept or ignore a credential. Return the service's message."""
        body: Row = {**self._own(), "userId": self._wallet.wallet_id, "credentialId": credential_id, "accept": accept}
        return str(self._ask("/api/v1/walletService/acknowledgeCredential", body)["message"])

    def poll(self) -> OpenRequest | None:
        """Return the oldest open request, or None."""
        try:
            got = self._ask("/api/v1/walletService/pollPresentationRequest", self._keyed())
        except NotFound:
            return None
        number = got.get("presentationRequestId")
        if not isinstance(number, int):
            raise StartError("the service's answer is not a presentation request")
        return OpenRequest(
            id=number,
            pending=pending if isinstance(pending := got.get("pending"), int) else 1,
            purpose=str(got.get("purpose", "")),
            endpoint=str(got.get("endpoint", "")),
            verifier=str(got.get("verifierDid", "")),
            nonce=str(got.get("nonce", "")),
            definition=json.dumps({"id": got.get("id"), "input_descriptors": got.get("input_descriptors")}),
        )

    def present(self, request: OpenRequest) -> str:
        """Present the first credential that meets a request. Return the service's message. Raises NotFound if the
        wallet has no such credential."""
        signer = self._wallet.signer()
        if signer is None:
            made = self._ask("/api/v1/walletService/createPresentation", self._keyed(presentationRequestId=request.id))
            presentation = str(made.get("presentation", ""))
        else:
            presentation = vc.present(
                [self._matching_token(request)],
                signer,
                audience=request.verifier,
                nonce=request.nonce,
                id=uuid4().urn,
                now=now_us(),
            )
        return self._submit(request, presentation=presentation)

    def decline(self, request: OpenRequest) -> str:
        """Decline a request. Return the service's message."""
        return self._submit(request, decline=True, walletKey=self._wallet.wallet_key)

    def _matching_token(self, request: OpenRequest) -> str:
        """Return the token of a credential that meets a request. Raises NotFound if the wallet has no such credential.
        The request's definition is checked first, because it comes from the service."""
        from sallyport.areas.did.presentations.exchange import satisfies  # slow import, only needed here

        wanted = definition.read(request.definition)
        for each in self.credentials():
            text = str(each.get("jwt", ""))
            try:
                token = jws.parse(text)
            except CredentialError:
                continue
            own = each.get("userDid", self._wallet.did) == self._wallet.did
            if own and each.get("status") != "Ignored" and satisfies(wanted, token.payload, token.algorithm):
                return text
        raise NotFound("the wallet has no credential that meets the request")

    def _submit(self, request: OpenRequest, **said: JSON) -> str:
        body: Row = {**self._own(), "holderDid": self._wallet.did, "presentationRequestId": request.id, **said}
        return str(self._ask("/api/v1/walletService/submitPresentation", body)["message"])

    def _own(self) -> Row:
        return {"walletId": self._wallet.wallet_id}

    def _keyed(self, **more: JSON) -> Row:
        return {**self._own(), "walletKey": self._wallet.wallet_key, "holderDid": self._wallet.did, **more}

    def _ask(self, path: str, body: Mapping[str, JSON]) -> Row:
        try:
            answer = self._client.post(path, json=body)
        except httpx.HTTPError as error:
            raise NoAnswer(f"{self._wallet.service}: no answer ({type(error).__name__})") from None
        if answer.status_code >= 500:
            raise NoAnswer(f"{self._wallet.service}: answers {answer.status_code}")
        try:
            got = answer.json() if len(answer.content) <= MAX_SIZE else None
        except ValueError:
            got = None
        if not isinstance(got, dict):
            raise StartError(
                f"{self._wallet.service}: the answer ({answer.status_code}) is not from Sallyport: check --service"
            )
        if answer.status_code == 404:
            raise NotFound(str(got.get("message", "not found")))
        if answer.status_code != 200:
            raise StartError(str(got.get("message") or f"the service answers {answer.status_code}"))
        return got


@contextmanager
def connected(wallet: WalletFile) -> Iterator[Remote]:
    """Yield a connection to the wallet's service."""
    headers = {"X-Authorization": wallet.token, "Content-Type": "application/json"}
    try:
        with httpx.Client(base_url=wallet.service, headers=headers, timeout=TIMEOUT_S) as client:
            yield Remote(wallet, client)
    except httpx.InvalidURL:
        raise StartError(
            "the file of the wallet has no service: create a new file with `sallyport wallet init`"
        ) from None
