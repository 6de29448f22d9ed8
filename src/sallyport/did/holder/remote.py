"""The operations that a wallet calls, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import httpx

from sallyport.base.clock import now_us
from sallyport.base.command import entries
from sallyport.base.errors import CredentialError, NotFound, StartError
from sallyport.base.wire import JSON, Row
from sallyport.did.crypto import jws, vc
from sallyport.did.holder.file import WalletFile
from sallyport.did.presentations import definition, exchange

TIMEOUT_S = 30.0
LARGEST = 8 << 20
"""Octets of an answer."""


class NoAnswer(StartError):
    """The service does not answer now: it may be starting again."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A presentation request as the wallet got it. pending: how many are open, this one included."""

    id: int
    pending: int
    purpose: str
    endpoint: str
    verifier: str
    nonce: str
    definition: str


class Remote:
    """A wallet's way to the service. Raises StartError: it does not answer, or refuses; NotFound: there is none."""

    def __init__(self, wallet: WalletFile, client: httpx.Client) -> None:
        self._wallet = wallet
        self._client = client

    def credentials(self) -> list[Row]:
        """What was assigned to the wallet, the accepted included."""
        body: Row = {"email": self._wallet.email, "walletKey": self._wallet.wallet_key}
        return entries(self._ask("/api/v1/walletService/pollCredentials", body).get("credentials"))

    def acknowledge(self, credential_id: int, *, accept: bool) -> str:
        """Accept a credential, or ignore it; what the service says."""
        body: Row = {**self._own(), "userId": self._wallet.wallet_id, "credentialId": credential_id, "accept": accept}
        return str(self._ask("/api/v1/walletService/acknowledgeCredential", body)["message"])

    def poll(self) -> OpenRequest | None:
        """The oldest request that is open."""
        try:
            got = self._ask("/api/v1/walletService/pollPresentationRequest", self._keyed())
        except NotFound:
            return None
        number = got.get("presentationRequestId")
        if not isinstance(number, int):
            raise StartError("the service answers with no presentation request")
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
        """Show the first credential that the request asks for; what the service says. NotFound: the wallet has none."""
        signer = self._wallet.signer()
        if signer is None:
            made = self._ask("/api/v1/walletService/createPresentation", self._keyed(presentationRequestId=request.id))
            presentation = str(made.get("presentation", ""))
        else:
            presentation = vc.present(
                [self._fitting(request)],
                signer,
                audience=request.verifier,
                nonce=request.nonce,
                id=uuid4().urn,
                now=now_us(),
            )
        return self._submit(request, presentation=presentation)

    def decline(self, request: OpenRequest) -> str:
        """Say no; what the service says."""
        return self._submit(request, decline=True, walletKey=self._wallet.wallet_key)

    def _fitting(self, request: OpenRequest) -> str:
        """The token of a credential that is what the request asks for: definitions are the service's, so they are read
        strictly."""
        wanted = definition.read(request.definition)
        for each in self.credentials():
            text = str(each.get("jwt", ""))
            try:
                token = jws.parse(text)
            except CredentialError:
                continue
            own = each.get("userDid", self._wallet.did) == self._wallet.did
            if own and each.get("status") != "Ignored" and exchange.is_met_by(wanted, token):
                return text
        raise NotFound("the wallet has no credential that is asked for")

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
            got = answer.json() if len(answer.content) <= LARGEST else None
        except ValueError:
            got = None
        if not isinstance(got, dict):
            raise StartError(
                f"{self._wallet.service}: answers {answer.status_code}, which is no answer of this service"
            )
        if answer.status_code == 404:
            raise NotFound(str(got.get("message", "not found")))
        if answer.status_code != 200:
            raise StartError(str(got.get("message") or f"the service answers {answer.status_code}"))
        return got


@contextmanager
def connected(wallet: WalletFile) -> Iterator[Remote]:
    """The way to the service that the wallet belongs to."""
    headers = {"X-Authorization": wallet.token, "Content-Type": "application/json"}
    try:
        with httpx.Client(base_url=wallet.service, headers=headers, timeout=TIMEOUT_S) as client:
            yield Remote(wallet, client)
    except httpx.InvalidURL:
        raise StartError("the wallet's file names no service") from None
