"""Wallets, their owners and their credentials."""

import pytest

from tests.api.holders import ACKNOWLEDGE, ASSIGN, ISSUE_PR, LIST, POLL, POLL_PR, REGISTER, RESET, SUBMIT, USERS, Holder
from tests.api.world import Tenant


def test_the_answer_of_a_registration(tenant: Tenant) -> None:
    """The answer has exactly the documented fields.

    Each wallet gets another key and another token, and the token has the role wallet.
    """
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
        "the domain already has a wallet with this e-mail address; to replace a lost walletKey, use resetWallet",
    )
    assert tenant.refused(LIST, token=first["token"], domainId=tenant.domain) == (403, "role not allowed")


@pytest.mark.parametrize(
    ("field", "value"),
    [("emailAddress", "no address"), ("emailAddress", "a@b c"), ("username", ""), ("walletUrl", "x:y")],
)
def test_malformed_fields(tenant: Tenant, field: str, value: str) -> None:
    """The error for a malformed field names it and does not repeat its value."""
    body = {"domainId": tenant.domain, "username": "ann", "emailAddress": "ann@corp.example", field: value}
    assert tenant.refused(REGISTER, **body) == (400, f"invalid {field}")


def test_a_reset_wallet(holder: Holder) -> None:
    """A reset invalidates the key and the token, and the new ones give access to the same wallet. A wallet of another
    domain is answered with 404.
    """
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
    """On both paths, the list has exactly the documented fields. A filter matches parts of names and addresses."""
    tenant = holder.tenant
    tenant.ask(REGISTER, domainId=tenant.domain, username="bob", emailAddress="b@elsewhere.example")
    holder.give(holder.issue())
    answer = tenant.ask(path, domainId=tenant.domain, pageNumber=1, pageSize=1, filter="")
    assert answer == {
        "code": 200,
        "status": "Success",
        "message": "2 wallet users",
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
    assert tenant.ask(path, domainId=tenant.domain, walletId=holder.wallet)["users"] == answer["users"]
    assert tenant.ask(path, domainId=tenant.domain, walletId=holder.wallet, filter="CORP")["count"] == 1
    assert tenant.ask(path, domainId=tenant.domain, walletId=holder.wallet, filter="elsewhere")["count"] == 0
    other = tenant.world.tenant("other")
    assert other.ask(path, domainId=other.domain, walletId=holder.wallet)["users"] == []


def test_arrays_of_assignments(holder: Holder) -> None:
    """An assignment takes integers or arrays. If one of them is unknown, nothing is assigned. The lists show the status
    of the credential.
    """
    tenant = holder.tenant
    credentials = [holder.issue(), holder.issue()]
    body = {"walletId": [holder.wallet], "userId": [holder.wallet], "credentialId": [*credentials, 10**9]}
    assert tenant.refused(ASSIGN, **body) == (404, "credential not found")
    listed = tenant.ask("/api/v1/credential/credentialList", domainId=tenant.domain)["credentials"]
    assert [each["status"] for each in listed] == ["ACTIVE", "ACTIVE"]
    answer = tenant.ask(ASSIGN, **{**body, "credentialId": credentials})
    assert answer == {"code": 200, "status": "Success", "message": "2 credentials assigned"}
    found = tenant.ask("/api/v1/credential/GetAssignedCredential", token=holder.token, walletId=holder.wallet)
    assert [each["id"] for each in found["credentials"]] == credentials


def test_an_expired_credential_keeps_its_status(holder: Holder) -> None:
    """The lists of a domain and of a wallet return the stored status, and `expired` in addition."""
    tenant, credential = holder.tenant, holder.issue()
    holder.give(credential)
    tenant.world.service.execute("update credentials set expires_at = 1 where id = ?", credential)
    for path, body in (
        ("/api/v1/credential/credentialList", {"domainId": tenant.domain}),
        ("/api/v1/credential/GetAcceptedCredential", {"walletId": holder.wallet}),
    ):
        (entry,) = tenant.ask(path, **body)["credentials"]
        assert (entry["status"], entry["expired"]) == ("Accepted", True), path


def test_the_credentials_of_a_wallet(holder: Holder) -> None:
    """The answer has the fields of the interface, the total and the walletKey.

    The password is a field beside the token and is not contained in the token.
    """
    tenant = holder.tenant
    credential = holder.issue(epmPassword="a password of ann's")
    tenant.ask(ASSIGN, walletId=holder.wallet, userId=holder.wallet, credentialId=credential)
    answer = tenant.ask(POLL, token=holder.token, email=" ANN@corp.example", walletKey=holder.key)
    (polled,) = answer.pop("credentials")
    assert answer == {
        "code": 200,
        "status": "Success",
        "message": "1 credential",
        "email": "ann@corp.example",
        "walletKey": holder.key,
        "totalCount": 1,
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
    """The token of the wallet or of an operator may accept or ignore a credential. The token of another wallet is
    refused.
    """
    tenant, credential = holder.tenant, holder.issue()
    other = tenant.ask(REGISTER, domainId=tenant.domain, username="bob", emailAddress="bob@corp.example")
    body = {"walletId": holder.wallet, "userId": holder.wallet, "credentialId": credential}
    assert tenant.refused(ACKNOWLEDGE, **body, accept=True) == (404, "credential not found")
    tenant.ask(ASSIGN, **body)
    assert tenant.refused(ACKNOWLEDGE, token=other["token"], **body, accept="true") == (
        403,
        "the token belongs to another wallet",
    )
    assert tenant.refused(ACKNOWLEDGE, **{**body, "userId": 10**9}, accept=True) == (404, "wallet not found")
    assert tenant.ask(ACKNOWLEDGE, **body, accept="no")["message"] == "credential ignored"
    ignored = tenant.ask("/api/v1/credential/GetIgnoredCredential", walletId=holder.wallet)
    assert [each["id"] for each in ignored["credentials"]] == [credential]
    assert tenant.ask(ACKNOWLEDGE, token=holder.token, **body, accept=True)["message"] == "credential accepted"
    accepted = tenant.ask("/api/v1/credential/GetAcceptedCredential", walletId=holder.wallet)
    assert [each["id"] for each in accepted["credentials"]] == [credential]
    assert tenant.refused(ACKNOWLEDGE, **body) == (400, "missing accept")


def test_another_tenant(holder: Holder) -> None:
    """Wallets, credentials, requests and issuers of another tenant are answered with 404."""
    other, credential = holder.tenant.world.tenant(), holder.issue()
    body = {"walletId": holder.wallet, "userId": holder.wallet, "credentialId": credential}
    assert other.refused(ASSIGN, **body) == (404, "wallet not found")
    assert other.refused(ACKNOWLEDGE, **body, accept=True) == (404, "wallet not found")
    assert other.refused(POLL, email=holder.email, walletKey=holder.key) == (401, "invalid walletKey")
    assert other.refused(POLL_PR, **holder.own()) == (404, "wallet not found")
    assert other.refused(SUBMIT, **holder.own(presentationRequestId=1, presentation="x")) == (404, "wallet not found")
    wanted = {"issuerDid": holder.issuer, "holderDid": holder.did, "endpoint": "e"}
    assert other.refused(ISSUE_PR, **wanted) == (404, "issuer not found")
