"""Holders of credentials, each with a wallet, for tests of the operations."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sallyport.areas.did.crypto import vc
from sallyport.areas.did.crypto.jws import Signer
from sallyport.base.clock import now_us
from tests.api.world import Tenant
from tests.areas.did.crypto.signers import did, signer

REGISTER = "/api/v1/walletService/registerWalletUser"
RESET = "/api/v1/walletService/resetWallet"
LIST, USERS = "/api/v1/walletService/walletUserList", "/api/v1/wallet/users"
ASSIGN = "/api/v1/walletService/assignWalletUser"
POLL = "/api/v1/walletService/pollCredentials"
ACKNOWLEDGE = "/api/v1/walletService/acknowledgeCredential"
ISSUE_PR = "/api/v1/verifierService/issuePR"
POLL_PR = "/api/v1/walletService/pollPresentationRequest"
CREATE = "/api/v1/walletService/createPresentation"
SUBMIT = "/api/v1/walletService/submitPresentation"
STATUS = "/api/v1/verifierService/presentationStatus"
HOLDER = "/api/v1/did/createHolderDid"
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"epmUsername": {"type": "string"}},
    "required": ["epmUsername"],
}


@dataclass
class Holder:
    """Ann's wallet with a key of its own, and the issuer of the wallet's credentials."""

    tenant: Tenant
    issuer: str
    schema: int
    wallet: int
    key: str
    token: str
    signer: Signer
    email: str = "ann@corp.example"

    @property
    def did(self) -> str:
        """Return the holder's DID."""
        return did(self.signer)

    def issue(self, **metadata: str) -> int:
        """Issue a credential and return its id."""
        issued = self.tenant.ask(
            "/api/v1/credential/createCredential",
            domainId=self.tenant.domain,
            issuerDid=self.issuer,
            holderDid=self.did,
            schemaId=self.schema,
            credentialName="Badge",
            metadata={"epmUsername": "ann", **metadata},
        )
        return int(issued["id"])

    def own(self, **fields: Any) -> dict[str, Any]:
        """Return the fields by which the wallet identifies itself."""
        return {"walletId": self.wallet, "holderDid": self.did, "walletKey": self.key, **fields}

    def give(self, credential: int, *, accept: bool = True) -> dict[str, Any]:
        """Assign a credential to the wallet, fetch it and acknowledge it. Return the fetched entry."""
        tenant = self.tenant
        tenant.ask(ASSIGN, walletId=self.wallet, userId=self.wallet, credentialId=credential)
        polled = tenant.ask(POLL, token=self.token, email=self.email, walletKey=self.key)["credentials"]
        body = {"walletId": self.wallet, "userId": self.wallet, "credentialId": credential, "accept": accept}
        tenant.ask(ACKNOWLEDGE, token=self.token, **body)
        found: dict[str, Any] = next(each for each in polled if each["credentialId"] == credential)
        return found

    def poll(self) -> dict[str, Any]:
        """Return the oldest open request."""
        got: dict[str, Any] = self.tenant.ask(POLL_PR, token=self.token, **self.own())
        return got

    def answer(self, jwt: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return the body that answers a request for a presentation."""
        presentation = vc.present(
            [jwt],
            self.signer,
            audience=request["verifierDid"],
            nonce=request["nonce"],
            id=f"urn:uuid:{uuid4()}",
            now=now_us(),
        )
        number = request["presentationRequestId"]
        return {**self.own(), "presentationRequestId": number, "presentation": presentation}


def new_did(tenant: Tenant, path: str, **fields: Any) -> str:
    """Create a DID with the method `key` and return the DID."""
    body = tenant.scoped(domainId=tenant.domain, method="key", **fields)
    answer = tenant.world.post(path, tenant.token, json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def enrol(tenant: Tenant) -> Holder:
    """Register a wallet of ann in a tenant."""
    by, domain = signer(4), tenant.domain
    issuer = new_did(tenant, "/api/v1/did/createIssuerDid", name="corp", description="")
    wallet = tenant.ask(REGISTER, domainId=domain, username="ann", emailAddress="ann@corp.example")
    new_did(tenant, HOLDER, walletUserId=wallet["walletId"], issuerId=0, name="ann", publicKeyJwk=by.key.public.jwk)
    schema = tenant.ask("/api/v1/schema/createSchema", author=issuer, name="Badge", schema=SCHEMA, sign=True)
    listed = tenant.ask("/api/v1/credential/credentialSchemaList", domainId=domain, issuerDid=issuer)
    assert schema["id"] and len(listed) == 1
    return Holder(tenant, issuer, listed[0]["id"], wallet["walletId"], wallet["walletKey"], wallet["token"], by)
