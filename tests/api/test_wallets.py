"""/api/v1/walletService/*, /api/v1/wallet/users and /api/v1/verifierService/issuePR, and a login by wallet from end to
end: issue, poll, accept, log in, revoke, be refused."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from sallyport.base.clock import now_us
from sallyport.did.crypto import proofs, vc
from sallyport.did.crypto.jws import Signer
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.api.world import PASSWORD, SECRET, Tenant, World, problem
from tests.did.crypto.signers import did, signer

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
HOLDER = "/api/v1/did/createHolderDid"
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"epmUsername": {"type": "string"}},
    "required": ["epmUsername"],
}


@dataclass
class Holder:
    """Ann's wallet, with a key of its own, and who issues to it."""

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
        """The holder's DID."""
        return did(self.signer)

    def issue(self, **metadata: str) -> int:
        """Issue a credential; its id."""
        made = self.tenant.ask(
            "/api/v1/credential/createCredential",
            domainId=self.tenant.domain,
            issuerDid=self.issuer,
            holderDid=self.did,
            schemaId=self.schema,
            credentialName="Badge",
            metadata={"epmUsername": "ann", **metadata},
        )
        return int(made["id"])

    def own(self, **fields: Any) -> dict[str, Any]:
        """What the wallet says of itself."""
        return {"walletId": self.wallet, "holderDid": self.did, "walletKey": self.key, **fields}

    def give(self, credential: int, *, accept: bool = True) -> dict[str, Any]:
        """Assign a credential, fetch it and acknowledge it; as it was fetched."""
        tenant = self.tenant
        tenant.ask(ASSIGN, walletId=self.wallet, userId=self.wallet, credentialId=credential)
        polled = tenant.ask(POLL, token=self.token, email=self.email, walletKey=self.key)["credentials"]
        body = {"walletId": self.wallet, "userId": self.wallet, "credentialId": credential, "accept": accept}
        tenant.ask(ACKNOWLEDGE, token=self.token, **body)
        found: dict[str, Any] = next(each for each in polled if each["credentialId"] == credential)
        return found

    def poll(self) -> dict[str, Any]:
        """The oldest open request."""
        got: dict[str, Any] = self.tenant.ask(POLL_PR, token=self.token, **self.own())
        return got

    def answer(self, jwt: str, request: dict[str, Any]) -> dict[str, Any]:
        """The body that meets a request."""
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


def made(tenant: Tenant, path: str, **fields: Any) -> str:
    """A new DID, by the method key."""
    body = tenant.scoped(domainId=tenant.domain, method="key", **fields)
    answer = tenant.world.post(path, tenant.token, json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


@pytest.fixture
def holder(tenant: Tenant) -> Holder:
    """Ann's wallet in a tenant of its own."""
    by, domain = signer(4), tenant.domain
    issuer = made(tenant, "/api/v1/did/createIssuerDid", name="corp", description="")
    wallet = tenant.ask(REGISTER, domainId=domain, username="ann", emailAddress="ann@corp.example")
    made(tenant, HOLDER, walletUserId=wallet["walletId"], issuerId=0, name="ann", publicKeyJwk=by.key.public.jwk)
    schema = tenant.ask("/api/v1/schema/createSchema", author=issuer, name="Badge", schema=SCHEMA, sign=True)
    listed = tenant.ask("/api/v1/credential/credentialSchemaList", domainId=domain, issuerDid=issuer)
    assert schema["id"] and len(listed) == 1
    return Holder(tenant, issuer, listed[0]["id"], wallet["walletId"], wallet["walletKey"], wallet["token"], by)


# --- wallets ----------------------------------------------------------------------------------------------------------


def test_the_answer_of_a_registration(tenant: Tenant) -> None:
    """Exactly these fields; the key and the token differ each time, and the token is of the role wallet."""
    body = {"domainId": tenant.domain, "username": "ann", "emailAddress": "ann@corp.example"}
    first = tenant.ask(REGISTER, **body, walletUrl="https://wallet.example/ann")
    second = tenant.ask(REGISTER, **{**body, "emailAddress": "bob@corp.example"})
    assert first["walletKey"].startswith("wk_") and first["walletKey"] != second["walletKey"]
    assert first["token"].startswith("sp_") and first["token"] != second["token"]
    assert first["walletId"] == first["userId"] != second["walletId"]
    named = {"code", "status", "message", "walletId", "userId", "walletKey", "token"}
    assert named <= set(first) and (first["code"], first["status"]) == (200, "Success")
    assert tenant.refused(REGISTER, **{**body, "emailAddress": "ANN@corp.example"}) == (
        409,
        "the domain has a wallet of that e-mail address",
    )
    assert tenant.refused(LIST, token=first["token"], domainId=tenant.domain) == (403, "role not allowed")


@pytest.mark.parametrize(
    ("field", "value"),
    [("emailAddress", "no address"), ("emailAddress", "a@b c"), ("username", ""), ("walletUrl", "x:y")],
)
def test_what_is_malformed_is_named(tenant: Tenant, field: str, value: str) -> None:
    """And not repeated."""
    body = {"domainId": tenant.domain, "username": "ann", "emailAddress": "ann@corp.example", field: value}
    assert tenant.refused(REGISTER, **body) == (400, f"invalid {field}")


def test_a_wallet_that_was_lost(holder: Holder) -> None:
    """Its key and its token are worth nothing any more; the new ones open the same wallet. Another domain's is not
    there."""
    tenant = holder.tenant
    credential = holder.issue()
    holder.give(credential)
    other = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    assert tenant.refused(RESET, domainId=other, walletId=holder.wallet) == (404, "wallet not found")
    made = tenant.ask(RESET, domainId=tenant.domain, walletId=holder.wallet)
    assert made["walletId"] == holder.wallet and made["walletKey"] != holder.key
    assert tenant.refused(POLL, token=holder.token, email=holder.email, walletKey=holder.key) == (401, "invalid token")
    assert tenant.refused(POLL, email=holder.email, walletKey=holder.key) == (401, "invalid walletKey")
    polled = tenant.ask(POLL, token=made["token"], email=holder.email, walletKey=made["walletKey"])
    assert [each["credentialId"] for each in polled["credentials"]] == [credential]


@pytest.mark.parametrize("path", [LIST, USERS])
def test_the_list_of_wallet_users(holder: Holder, path: str) -> None:
    """On both paths, exactly these fields; a filter finds parts of names and addresses."""
    tenant = holder.tenant
    tenant.ask(REGISTER, domainId=tenant.domain, username="bob", emailAddress="b@elsewhere.example")
    holder.give(holder.issue())
    answer = tenant.ask(path, domainId=tenant.domain, pageNumber=1, pageSize=1, filter="")
    assert answer == {
        "code": 200,
        "status": "Success",
        "message": "2 wallet user(s)",
        "count": 2,
        "users": [
            {
                "walletId": holder.wallet,
                "userId": holder.wallet,
                "walletUrl": "",
                "status": "Registered",
                "username": "ann",
                "emailAddress": "ann@corp.example",
                "noOfcredential": 1,
            }
        ],
    }
    found = tenant.ask(path, domainId=tenant.domain, filter="ELSEWHERE")["users"]
    assert [each["username"] for each in found] == ["bob"]


def test_arrays_of_assignments(holder: Holder) -> None:
    """Integers or arrays; all or none; the credential's status is told by the lists."""
    tenant = holder.tenant
    credentials = [holder.issue(), holder.issue()]
    body = {"walletId": [holder.wallet], "userId": [holder.wallet], "credentialId": [*credentials, 10**9]}
    assert tenant.refused(ASSIGN, **body) == (404, "credential not found")
    listed = tenant.ask("/api/v1/credential/credentialList", domainId=tenant.domain)["credentials"]
    assert [each["status"] for each in listed] == ["ACTIVE", "ACTIVE"]
    answer = tenant.ask(ASSIGN, **{**body, "credentialId": credentials})
    assert answer == {"code": 200, "status": "Success", "message": "2 credential(s) assigned"}
    found = tenant.ask("/api/v1/credential/GetAssignedCredential", token=holder.token, walletId=holder.wallet)
    assert [each["id"] for each in found["credentials"]] == credentials


def test_the_credentials_of_a_wallet(holder: Holder) -> None:
    """Exactly these fields; the password is beside the token and not in it; the answer echoes the walletKey."""
    tenant = holder.tenant
    credential = holder.issue(epmPassword="a password of ann's")
    tenant.ask(ASSIGN, walletId=holder.wallet, userId=holder.wallet, credentialId=credential)
    answer = tenant.ask(POLL, token=holder.token, email=" ANN@corp.example", walletKey=holder.key)
    (polled,) = answer.pop("credentials")
    assert answer == {
        "code": 200,
        "status": "Success",
        "message": "1 credential(s)",
        "email": "ann@corp.example",
        "walletKey": holder.key,
    }
    jwt, created = polled.pop("jwt"), polled.pop("createdAt")
    assert created.startswith("20") and len(jwt.split(".")) == 3
    assert polled == {
        "credentialId": credential,
        "credentialName": "Badge",
        "issuerName": "corp",
        "issuerDid": holder.issuer,
        "userDid": holder.did,
        "status": "Assigned",
        "epmPassword": "a password of ann's",
    }
    assert tenant.refused(POLL, email="ann@corp.example", walletKey="wk_x") == (401, "invalid walletKey")
    assert tenant.refused(POLL, email="nobody@corp.example", walletKey=holder.key) == (401, "invalid walletKey")


def test_acknowledging(holder: Holder) -> None:
    """Accepted or ignored, by the wallet's token or an operator's; another wallet's token is refused."""
    tenant, credential = holder.tenant, holder.issue()
    other = tenant.ask(REGISTER, domainId=tenant.domain, username="bob", emailAddress="bob@corp.example")
    body = {"walletId": holder.wallet, "userId": holder.wallet, "credentialId": credential}
    assert tenant.refused(ACKNOWLEDGE, **body, accept=True) == (404, "credential not found")
    tenant.ask(ASSIGN, **body)
    assert tenant.refused(ACKNOWLEDGE, token=other["token"], **body, accept="true") == (403, "not the token's wallet")
    assert tenant.refused(ACKNOWLEDGE, **{**body, "userId": 10**9}, accept=True) == (404, "wallet not found")
    assert tenant.ask(ACKNOWLEDGE, **body, accept="no")["message"] == "credential ignored"
    ignored = tenant.ask("/api/v1/credential/GetIgnoredCredential", walletId=holder.wallet)
    assert [each["id"] for each in ignored["credentials"]] == [credential]
    assert tenant.ask(ACKNOWLEDGE, token=holder.token, **body, accept=True)["message"] == "credential accepted"
    accepted = tenant.ask("/api/v1/credential/GetAcceptedCredential", walletId=holder.wallet)
    assert [each["id"] for each in accepted["credentials"]] == [credential]
    assert tenant.refused(ACKNOWLEDGE, **body) == (400, "missing accept")


def test_another_tenant(holder: Holder) -> None:
    """Wallets, credentials, requests and issuers of another tenant do not exist."""
    other, credential = holder.tenant.world.tenant(), holder.issue()
    body = {"walletId": holder.wallet, "userId": holder.wallet, "credentialId": credential}
    assert other.refused(ASSIGN, **body) == (404, "wallet not found")
    assert other.refused(ACKNOWLEDGE, **body, accept=True) == (404, "wallet not found")
    assert other.refused(POLL, email=holder.email, walletKey=holder.key) == (401, "invalid walletKey")
    assert other.refused(POLL_PR, **holder.own()) == (404, "wallet not found")
    assert other.refused(SUBMIT, **holder.own(presentationRequestId=1, presentation="x")) == (404, "wallet not found")
    wanted = {"issuerDid": holder.issuer, "holderDid": holder.did, "endpoint": "e"}
    assert other.refused(ISSUE_PR, **wanted) == (404, "issuer not found")


# --- presentations ----------------------------------------------------------------------------------------------------


@pytest.fixture
def server(holder: Holder) -> str:
    """An instance."""
    tenant = holder.tenant
    tenant.ask("/api/v1/instances/addInstance", domainId=tenant.domain, instanceName="server")
    return "server"


def test_a_presentation_from_end_to_end(holder: Holder, server: str) -> None:
    """Issued, polled, submitted once: exactly the fields of the interface, and what binds the presentation."""
    tenant, jwt = holder.tenant, holder.give(holder.issue())["jwt"]
    wanted = {
        "username": "ann",
        "issuerDid": holder.issuer,
        "holderDid": holder.did,
        "walletUrl": "",
        "endpoint": server,
    }
    issued = tenant.ask(ISSUE_PR, **wanted)
    (pr,) = issued.pop("prs")
    assert issued == {"message": "1 presentation request(s) issued", "status": "Success", "code": 200}
    assert pr == {"prId": pr["prId"], "walletId": holder.wallet, "holderDid": holder.did}
    request = holder.poll()
    assert request["presentationRequestId"] == pr["prId"] and request["pending"] == 1
    assert (request["verifierDid"], request["endpoint"]) == (holder.issuer, server)
    (descriptor,) = request["input_descriptors"]
    assert set(descriptor) >= {"id", "name", "purpose", "format", "constraints"}
    assert all(set(each) >= {"id", "path"} for each in descriptor["constraints"]["fields"])
    body = holder.answer(jwt, request)
    assert tenant.ask(SUBMIT, token=holder.token, **body) == {
        "code": 200,
        "status": "Success",
        "message": "presentation accepted",
    }
    assert tenant.refused(SUBMIT, token=holder.token, **body) == (409, "the presentation request is over")
    assert tenant.refused(POLL_PR, **holder.own()) == (404, "no presentation request is open")


def test_a_credential_document_with_proof(holder: Holder, server: str) -> None:
    """The document of GetCredential, with its issuer's proof and beside it the holder's; the issuer's alone, which
    everybody has who has seen it, opens nothing."""
    tenant, credential = holder.tenant, holder.issue()
    holder.give(credential)
    document = tenant.ask("/api/v1/credential/GetCredential", token=holder.token, credentialId=str(credential))[
        "credential"
    ]
    tenant.ask(ISSUE_PR, issuerDid=holder.issuer, holderDid=holder.did, endpoint=server)
    request = holder.poll()
    issuers = document.pop("proof")
    secured = proofs.sign(
        document,
        holder.signer,
        purpose="authentication",
        at=now_us(),
        challenge=request["nonce"],
        domain=request["verifierDid"],
    )
    body = holder.own(presentationRequestId=request["presentationRequestId"])
    replayed = {**document, "proof": issuers}
    assert tenant.refused(SUBMIT, token=holder.token, **body, presentation=replayed) == (
        400,
        "a presentation has one proof of its holder",
    )
    both = {**document, "proof": [issuers, secured["proof"]]}
    assert tenant.ask(SUBMIT, token=holder.token, **body, presentation=both)["message"] == "presentation accepted"


def test_what_updateuserwallet_does(holder: Holder) -> None:
    """The credential goes into the wallet and is the user's, whose list entry names it; what another wallet has is
    refused, and then nothing is changed."""
    tenant, credential = holder.tenant, holder.issue()
    bob = tenant.ask(REGISTER, domainId=tenant.domain, username="bob", emailAddress="bob@corp.example")["walletId"]
    entries = tenant.ask("/api/v1/endpointUsers/listAllEpmUsers", domainId=tenant.domain)["epmUsers"]
    (user,) = [each["userId"] for each in entries if each["userName"] == "ann"]
    body = {"domainId": tenant.domain, "epmUserId": [user], "credentialId": [credential], "assignMultiple": "false"}
    update = "/api/v1/endpointUsers/updateUserWallet"
    assert tenant.refused(update, method="PUT", **body, platformUserNames=[bob]) == (
        409,
        "the credential is assigned to another wallet",
    )
    assert tenant.ask(update, method="PUT", **body, platformUserNames=[holder.wallet])["status"] == "Success"
    found = tenant.ask("/api/v1/credential/GetAssignedCredential", walletId=holder.wallet)["credentials"]
    (name,) = [each["credentialId"] for each in found if each["id"] == credential]
    wanted = {"filterBy": "credentialId", "value": name}
    listed = tenant.ask("/api/v1/endpointUsers/listAllEpmUsers", domainId=tenant.domain, filter=wanted)["epmUsers"]
    assert [(each["userId"], each["credentialId"]) for each in listed] == [(user, name)]


@pytest.mark.parametrize("spelling", ["groupop", "grouop"])
def test_the_holders_of_a_group_are_asked(holder: Holder, spelling: str) -> None:
    """In either spelling; the group is named by `endpoint`, and no holder."""
    tenant = holder.tenant
    holder.give(holder.issue())
    group = tenant.ask("/api/v1/instanceGroup/addInstanceGroup", domainId=tenant.domain, groupName="admins")
    wanted = {"issuerDid": holder.issuer, "endpoint": "admins", "holderDid": "", spelling: "all"}
    assert tenant.refused(ISSUE_PR, **wanted) == (404, "the group has no holders")
    users = tenant.ask("/api/v1/endpointUsers/listAllEpmUsers", domainId=tenant.domain)["epmUsers"]
    ids = [each["userId"] for each in users if each["userName"] == "ann"]
    tenant.ask(
        "/api/v1/instanceGroup/assignUsersToEndpointGroup",
        domainId=tenant.domain,
        groupId=group["instanceId"],
        userIds=ids,
        action="add",
    )
    assert [each["holderDid"] for each in tenant.ask(ISSUE_PR, **wanted)["prs"]] == [holder.did]
    assert tenant.refused(ISSUE_PR, **{**wanted, spelling: "no"})[0] == 400


def test_what_is_no_presentation(holder: Holder, server: str) -> None:
    """Refused by a text that names what is wrong; nothing at all, and a decline without the key, are told apart."""
    tenant = holder.tenant
    tenant.ask(ISSUE_PR, issuerDid=holder.issuer, holderDid=holder.did, endpoint=server)
    number = holder.poll()["presentationRequestId"]
    body = {"walletId": holder.wallet, "holderDid": holder.did, "presentationRequestId": number}
    for presentation in ("x", {"a": 1}, {"proof": {"jwt": "x"}}, {"proof": [[]]}, {"proof": {"type": "x"}}):
        assert tenant.refused(SUBMIT, **body, presentation=presentation)[0] == 400
    assert tenant.refused(SUBMIT, **body)[0] == 400
    assert tenant.refused(SUBMIT, **body, presentation=7)[0] == 400
    assert tenant.refused(SUBMIT, **body, decline=True)[0] == 403
    assert tenant.ask(SUBMIT, **body, decline=True, walletKey=holder.key)["message"] == "presentation declined"
    assert tenant.refused(SUBMIT, **body, presentation="x")[0] == 409


def test_a_key_that_is_kept_here(holder: Holder, server: str) -> None:
    """createHolderDid without a key: createPresentation signs for who brings the walletKey."""
    tenant = holder.tenant
    kept = made(tenant, HOLDER, walletUserId=holder.wallet, issuerId=0, name="ann")
    issued = tenant.ask(
        "/api/v1/issueVerifiableCredential",
        domainId=tenant.domain,
        issuerDid=holder.issuer,
        holderDid=kept,
        schemaId=holder.schema,
        credentialName="Badge",
        metadata={"epmUsername": "ann"},
    )
    tenant.ask(ASSIGN, walletId=holder.wallet, userId=holder.wallet, credentialId=issued["id"])
    (pr,) = tenant.ask(ISSUE_PR, issuerDid=holder.issuer, holderDid=kept, endpoint=server)["prs"]
    body = {**holder.own(holderDid=kept), "presentationRequestId": pr["prId"]}
    assert tenant.refused(CREATE, token=holder.token, **{**body, "walletKey": "wk_x"}) == (401, "invalid walletKey")
    presentation = tenant.ask(CREATE, token=holder.token, **body)["presentation"]
    assert tenant.ask(SUBMIT, token=holder.token, **body, presentation=presentation)["status"] == "Success"


# --- the wallet as second factor --------------------------------------------------------------------------------------


@pytest.fixture
def login(holder: Holder) -> Iterator[Callable[[], int]]:
    """Logs ann in over RADIUS at a device of the tenant, whose domain enforces with the wallet; the answer's code."""
    tenant, address = holder.tenant, holder.tenant.world.address()
    tenant.ask("/network_device/AddClient", name="nas", address=address, secret=SECRET, domainId=tenant.domain)
    body = {"domainId": tenant.domain, "provider": "wallet", "timeoutSeconds": 30}
    assert tenant.refused("/ad/SetMFAProvider", **body, issuerDid="no DID") == (400, "invalid issuerDid")
    tenant.ask("/ad/SetMFAProvider", **body, issuerDid=holder.issuer)
    assert tenant.ask("/ad/GetMFAProvider", domainId=tenant.domain)["issuerDid"] == holder.issuer
    tenant.ask("/ad/updateDomainEnforcement", domainId=tenant.domain, enforcementMode="enforce")
    with tenant.world.service.radius(SECRET, source=address) as client:
        client.sock.settimeout(60)
        yield lambda: client.login("ann", PASSWORD)


def waiting(holder: Holder) -> dict[str, Any]:
    """The request of a login, once it is there."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = holder.tenant.world.post(POLL_PR, holder.token, json=holder.own())
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        assert problem(answer) == (404, "no presentation request is open")
        time.sleep(0.05)
    raise AssertionError("no request was opened")


def test_a_login_by_wallet(world: World, holder: Holder, login: Callable[[], int]) -> None:
    """Not enrolled: refused. Then issued, polled and accepted: the presentation lets the login in that waits. Declined:
    refused. Revoked: refused, at once."""
    tenant = holder.tenant
    assert login() == ACCESS_REJECT
    credential = holder.issue()
    jwt = holder.give(credential)["jwt"]
    with ThreadPoolExecutor(1) as thread:
        accepted = thread.submit(login)
        request = waiting(holder)
        assert request["purpose"].startswith("Login of ann at ")
        body = holder.answer(jwt, request)
        tenant.ask(SUBMIT, token=holder.token, **body)
        assert accepted.result(60) == ACCESS_ACCEPT
        assert tenant.refused(SUBMIT, token=holder.token, **body)[0] == 409  # one approval, one Accept

        declined = thread.submit(login)
        number = waiting(holder)["presentationRequestId"]
        tenant.ask(SUBMIT, token=holder.token, **holder.own(presentationRequestId=number), decline=True)
        assert declined.result(60) == ACCESS_REJECT

        cut_off = thread.submit(login)
        late = waiting(holder)
        tenant.ask(
            "/api/v1/credential/revokecredential",
            vcid=credential,
            domainId=tenant.domain,
            issuerDid=holder.issuer,
            holderDid=holder.did,
        )
        assert cut_off.result(60) == ACCESS_REJECT
    assert tenant.refused(SUBMIT, token=holder.token, **holder.answer(jwt, late))[0] == 409
    assert login() == ACCESS_REJECT
    events = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=10)["events"][::-1]
    assert [(each["decision"], each["reason"]) for each in events] == [
        ("reject", "not enrolled"),
        ("accept", ""),
        ("reject", "second factor denied"),
        ("reject", "second factor denied"),
        ("reject", "not enrolled"),
    ]
    assert {each["factor"] for each in events} == {"local+wallet"}
    text = world.http.get("/metrics").text
    assert 'sallyport_presentations_total{result="accepted"}' in text
