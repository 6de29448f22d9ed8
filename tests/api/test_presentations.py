"""Requests for presentations, the answers of wallets, and logins by wallet from the issue of a credential to its
revocation.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sallyport.areas.did.crypto import proofs
from sallyport.base.clock import SECOND, from_iso, now_us
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.api.holders import (
    ASSIGN,
    CREATE,
    HOLDER,
    ISSUE_PR,
    POLL_PR,
    REGISTER,
    STATUS,
    SUBMIT,
    Holder,
    new_did,
)
from tests.api.world import PASSWORD, SECRET, World, problem


@pytest.fixture
def server(holder: Holder) -> str:
    """Add an instance and return its name."""
    tenant = holder.tenant
    tenant.ask("/api/v1/instances/addInstance", domainId=tenant.domain, instanceName="server")
    return "server"


def test_a_presentation_from_end_to_end(holder: Holder, server: str) -> None:
    """A request is issued, polled and submitted once. It has exactly the fields of the interface and the values that
    bind the presentation to it.
    """
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
    assert issued == {"message": "1 presentation request issued", "status": "Success", "code": 200}
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
    assert tenant.refused(SUBMIT, token=holder.token, **body) == (409, "the presentation request has ended")
    assert tenant.refused(POLL_PR, **holder.own()) == (404, "no presentation request is open")


def test_a_document_whose_proof_has_the_interfaces_keys(holder: Holder, server: str) -> None:
    """The document of the credential is accepted if `proof.jws` is the holder's VP-JWT."""
    tenant, credential = holder.tenant, holder.issue()
    jwt = holder.give(credential)["jwt"]
    read = tenant.ask("/api/v1/credential/GetCredential", token=holder.token, credentialId=str(credential))
    tenant.ask(ISSUE_PR, issuerDid=holder.issuer, holderDid=holder.did, endpoint=server)
    body = holder.answer(jwt, holder.poll())
    proof = {
        "type": "JsonWebSignature2020",
        "created": "2026-01-01T00:00:00Z",
        "jws": body["presentation"],
        "proofPurpose": "authentication",
        "verificationMethod": holder.signer.method_id,
    }
    shown = {**read["credential"], "proof": proof}
    assert tenant.ask(SUBMIT, token=holder.token, **{**body, "presentation": shown})["status"] == "Success"


@pytest.mark.parametrize("state", ["Pending", "Accepted", "Declined", "Withdrawn"])
def test_the_status_of_a_request(holder: Holder, server: str, state: str) -> None:
    """presentationStatus returns the state of a request, the time of its last change, and its holder."""
    tenant, credential = holder.tenant, holder.issue()
    jwt = holder.give(credential)["jwt"]
    (pr,) = tenant.ask(ISSUE_PR, issuerDid=holder.issuer, holderDid=holder.did, endpoint=server)["prs"]
    body = holder.answer(jwt, holder.poll())
    if state == "Accepted":
        tenant.ask(SUBMIT, token=holder.token, **body)
    elif state == "Declined":
        tenant.ask(SUBMIT, token=holder.token, **body, decline=True)
    elif state == "Withdrawn":
        revoked = {"vcid": credential, "issuerDid": holder.issuer, "holderDid": holder.did}
        tenant.ask("/api/v1/credential/revokecredential", domainId=tenant.domain, **revoked)
    answer = tenant.ask(STATUS, token=tenant.role("auditor"), presentationRequestId=pr["prId"])
    assert abs(from_iso(answer.pop("at")) - now_us()) < 60 * SECOND
    assert answer == {
        "code": 200,
        "message": f"presentation request {state.lower()}",
        "status": state,
        "presentationRequestId": pr["prId"],
        "holderDid": holder.did,
    }


def test_the_status_of_another_tenants_request(world: World, holder: Holder, server: str) -> None:
    """A request of another tenant is answered with 404."""
    (pr,) = holder.tenant.ask(ISSUE_PR, issuerDid=holder.issuer, holderDid=holder.did, endpoint=server)["prs"]
    refusal = world.tenant().refused(STATUS, presentationRequestId=pr["prId"])
    assert refusal == (404, "presentation request not found")


def test_the_requests_of_a_domain_are_listed(world: World, holder: Holder, server: str) -> None:
    """listPresentations returns the requests newest first, in parts, and nothing of another tenant."""
    tenant, path = holder.tenant, "/api/v1/verifierService/listPresentations"
    ids = [
        tenant.ask(ISSUE_PR, issuerDid=holder.issuer, holderDid=holder.did, endpoint=server)["prs"][0]["prId"]
        for _ in range(3)
    ]
    first = tenant.ask(path, token=tenant.role("auditor"), domainId=tenant.domain, pageSize=2)
    assert [each["presentationRequestId"] for each in first["requests"]] == ids[:0:-1]
    newest = first["requests"][0]
    assert (newest["status"], newest["username"], newest["holderDid"]) == ("Pending", "ann", holder.did)
    assert (newest["walletId"], newest["endpoint"]) == (holder.wallet, server)
    last = tenant.ask(path, domainId=tenant.domain, pageSize=2, before=first["before"])
    assert ([each["presentationRequestId"] for each in last["requests"]], last["before"]) == (ids[:1], 0)
    other = world.tenant()
    assert other.ask(path, domainId=other.domain)["requests"] == []
    assert other.refused(path, domainId=tenant.domain) == (403, "domain not in tenant")


def test_a_credential_document_with_proof(holder: Holder, server: str) -> None:
    """The document of GetCredential is accepted if it has both the issuer's proof and the holder's proof.

    The issuer's proof alone is refused, because others may have seen it.
    """
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
        "a presentation must have one proof of its holder",
    )
    both = {**document, "proof": [issuers, secured["proof"]]}
    assert tenant.ask(SUBMIT, token=holder.token, **body, presentation=both)["message"] == "presentation accepted"


def test_updateuserwallet_assigns_a_credential(holder: Holder) -> None:
    """updateUserWallet assigns the credential to the wallet and to the user.

    The user's list entry then names the credential. A credential of another wallet is refused, and nothing is changed.
    """
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
    tenant.ask(update, method="PUT", **body, credentialType="badge")
    shown = tenant.ask("/api/v1/endpointUsers/getEpmUserDetail", domainId=tenant.domain, userId=user)
    assert shown["credentialType"] == "badge"


@pytest.mark.parametrize("spelling", ["groupop", "grouop"])
def test_the_holders_of_a_group_are_asked(holder: Holder, spelling: str) -> None:
    """If `endpoint` is given without a holder, it names a group, and each holder in the group gets a request. Both
    spellings of the field are accepted.
    """
    tenant = holder.tenant
    holder.give(holder.issue())
    group = tenant.ask("/api/v1/instanceGroup/addInstanceGroup", domainId=tenant.domain, groupName="admins")
    wanted = {"issuerDid": holder.issuer, "endpoint": "admins", "holderDid": "", spelling: "all"}
    assert tenant.refused(ISSUE_PR, **wanted) == (404, "no user of the group holds a credential of this issuer")
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


def test_malformed_presentations(holder: Holder, server: str) -> None:
    """A malformed or missing presentation is answered with 400.

    Declining without the walletKey is answered with 403. After a decline the request is closed.
    """
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


def test_a_key_kept_by_the_service(holder: Holder, server: str) -> None:
    """If the service keeps the holder's key, createPresentation signs for a caller that sends the walletKey."""
    tenant = holder.tenant
    kept = new_did(tenant, HOLDER, walletUserId=holder.wallet, issuerId=0, name="ann")
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
    """Return a function that logs ann in over RADIUS and returns the code of the answer.

    The domain of the device enforces with the wallet as second factor.
    """
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
    """Wait until a login has made a request, and return the request."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = holder.tenant.world.post(POLL_PR, holder.token, json=holder.own())
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        assert problem(answer) == (404, "no presentation request is open")
        time.sleep(0.05)
    raise AssertionError("no request was opened")


def test_a_login_by_the_did_of_the_user(holder: Holder, login: Callable[[], int]) -> None:
    """A credential without an epmUsername lets a user log in only if the `did` of the user is the DID of the
    credential's holder.
    """
    tenant = holder.tenant
    jwt = holder.give(holder.issue(epmUsername=""))["jwt"]
    assert login() == ACCESS_REJECT
    entries = tenant.ask("/api/v1/endpointUsers/listAllEpmUsers", domainId=tenant.domain)["epmUsers"]
    (user,) = [each["userId"] for each in entries if each["userName"] == "ann"]
    update = {"domainId": tenant.domain, "userId": user, "did": holder.did}
    tenant.ask("/api/v1/endpointUsers/updateEpmUserInfo", method="PUT", **update)
    with ThreadPoolExecutor(1) as thread:
        accepted = thread.submit(login)
        tenant.ask(SUBMIT, token=holder.token, **holder.answer(jwt, waiting(holder)))
        assert accepted.result(60) == ACCESS_ACCEPT


def test_a_login_by_wallet(world: World, holder: Holder, login: Callable[[], int]) -> None:
    """Without an enrolment a login is rejected.

    If the presentation is accepted, the waiting login is accepted. If it is declined or the credential is revoked, the
    login is rejected at once.
    """
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
        assert tenant.refused(SUBMIT, token=holder.token, **body)[0] == 409  # one approval gives one Access-Accept

        declined = thread.submit(login)
        number = waiting(holder)["presentationRequestId"]
        tenant.ask(SUBMIT, token=holder.token, **holder.own(presentationRequestId=number), decline=True)
        assert declined.result(60) == ACCESS_REJECT
        assert login() == ACCESS_REJECT  # no prompt until the pause ends
        tenant.ask("/ad/EndPromptPause", domainId=tenant.domain, userName="ann")

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
    events = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=10)["events"][::-1]
    assert [(each["decision"], each["reason"]) for each in events] == [
        ("reject", "not enrolled"),
        ("accept", ""),
        ("reject", "not me"),
        ("reject", "too many prompts"),
        ("reject", "second factor denied"),
    ]
    assert {each["factor"] for each in events} == {"local+wallet"}
    text = world.http.get("/metrics").text
    assert 'sallyport_presentations_total{result="accepted"}' in text
