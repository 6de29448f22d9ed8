"""The operations of DIDs, schemas and credentials, and their public documents."""

import re
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from sallyport.areas.did.crypto import jws, vc
from sallyport.areas.did.crypto.documents import did_of, parse, resolve
from sallyport.areas.did.crypto.encoding import read_object
from sallyport.base.clock import now_us
from tests.api.world import Tenant, problem
from tests.areas.did.crypto.signers import HOLDER, ISSUERS
from tests.areas.did.status import check, entry_of

ISSUER = "/api/v1/did/createIssuerDid"
HOLDER_DID = "/api/v1/did/createHolderDid"
LIST, SEARCH, DELETE = "/api/v1/did/DIDList", "/api/v1/did/SearchDID", "/api/v1/did/deleteDid"
ROTATE, RESOLVE = "/api/v1/did/rotateKey", "/api/v1/did/resolve/"
SCHEMA, SCHEMAS = "/api/v1/schema/createSchema", "/api/v1/credential/credentialSchemaList"
ISSUE = ("/api/v1/credential/createCredential", "/api/v1/issueVerifiableCredential")
CREDENTIALS, GET = "/api/v1/credential/credentialList", "/api/v1/credential/GetCredential"
REVOKE = "/api/v1/credential/revokecredential"
OF_WALLET = tuple(f"/api/v1/credential/Get{each}Credential" for each in ("Assigned", "Accepted", "Ignored"))
JWK = HOLDER.key.public.jwk
DID = HOLDER.method_id.partition("#")[0]
JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "description": "A badge",
    "type": "object",
    "properties": {"epmUsername": {"type": "string", "maxLength": 20}},
    "additionalProperties": True,
}


def create(tenant: Tenant, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Create a DID and return the answer. The parameter `method` is a field of the body; in `Tenant.ask` it is the HTTP
    method.
    """
    answer = tenant.world.post(path, tenant.token, json={"domainId": tenant.domain, **fields})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def refuse_creation(tenant: Tenant, path: str, fields: dict[str, Any]) -> tuple[int, str]:
    """Send a request to create a DID that must be refused, and return the status and the text."""
    answer = tenant.world.post(path, tenant.token, json={"domainId": tenant.domain, **fields})
    assert "hunter2" not in answer.text
    return problem(answer)


def issuer(tenant: Tenant, method: str = "key", **fields: Any) -> str:
    """Create an issuer and return its DID."""
    return str(create(tenant, ISSUER, {"method": method, "name": "The issuer", "description": "d", **fields})["id"])


def holder(tenant: Tenant) -> str:
    """Return the DID that HOLDER's key has."""
    if not tenant.ask(SEARCH, name=DID)["count"]:
        create(tenant, HOLDER_DID, {"method": "key", "name": "Alice", "publicKeyJwk": JWK})
    return DID


def schema(tenant: Tenant, author: str, **fields: Any) -> dict[str, Any]:
    """Create a schema and return the answer."""
    made: dict[str, Any] = tenant.ask(
        SCHEMA, **{"author": author, "name": "Badge", "schema": JSON_SCHEMA, "sign": True, **fields}
    )
    return made


def body(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    """Return a valid body for createCredential."""
    by = issuer(tenant)
    return {
        "domainId": tenant.domain,
        "issuerDid": by,
        "holderDid": holder(tenant),
        "schemaId": schema(tenant, by)["id"],
        "credentialName": "Badge",
        "metadata": {"epmUsername": "alice", "epmPassword": "hunter2", "holderDID": DID, "holderId": "17"},
        "expiry": "2999-01-01T00:00:00Z",
        **fields,
    }


def read_public(tenant: Tenant, url: str, **headers: str) -> Any:
    """Read a public address of the service without a token. The host of the address is ignored."""
    answer = tenant.world.http.get(urlsplit(url).path, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["access-control-allow-origin"] == "*"
    return answer


@pytest.mark.parametrize("method", ["key", "jwk", "web"])
def test_a_new_issuer(tenant: Tenant, method: str) -> None:
    """The answer has the documented fields and types, and its id is the DID. The new DID is in the list."""
    answer = create(tenant, ISSUER, {"method": method, "name": "n", "description": "d", "keyType": "P-256"})
    assert re.fullmatch(f"did:{method}:[A-Za-z0-9:%._-]+", answer["id"])
    assert answer == {
        "id": answer["id"], "code": 200, "message": "issuer DID created", "status": "Success",
        "didId": answer["didId"], "issuerId": answer["didId"],
    }  # fmt: skip
    (row,) = tenant.ask(LIST, domainId=tenant.domain, issuerId=0, userId=0)
    assert re.fullmatch(r"\d\d-\d\d-\d{4} \d\d:\d\d:\d\d", row.pop("lastYpdatedAt"))
    assert row == {
        "id": answer["didId"], "DIDType": "Issuer", "didType": "Issuer", "domainId": tenant.domain, "did": answer["id"],
        "name": "n", "issuerName": "n", "credentialIssued": 0, "desc": "d", "method": method,
        "issuerId": answer["didId"], "walletUserId": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"method": "ion"}, (400, "invalid method")), ({"method": None}, (400, "invalid method")),
        ({"method": ["key"]}, (400, "invalid method")), ({"method": "key", "keyType": "rsa"}, (400, "invalid keyType")),
        ({}, (400, "missing method")), ({"method": "key", "name": "x" * 300}, (400, "invalid name")),
    ],
)  # fmt: skip
def test_malformed_issuers(tenant: Tenant, fields: dict[str, Any], refusal: tuple[int, str]) -> None:
    """An unknown method or curve is answered with 400, and the message names the field."""
    assert refuse_creation(tenant, ISSUER, fields) == refusal
    assert tenant.ask(LIST, domainId=tenant.domain) == []


def test_spellings_of_a_method(tenant: Tenant) -> None:
    """`did:key` and `KEY` are accepted as the method `key`."""
    assert issuer(tenant, "did:key").startswith("did:key:")
    assert issuer(tenant, "KEY").startswith("did:key:")


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        (
            {"publicKeyJwk": {**JWK, "d": "hunter2"}},
            (400, "a private key was sent: replace this key, and send only the public key"),
        ),
        (
            {"publicKeyJwk": {"kty": "oct"}},
            (400, "the curve of the key is not supported; use one of Ed25519, P-256, secp256k1"),
        ),
        ({"publicKeyJwk": "hunter2"}, (400, "invalid publicKeyJwk")),
        ({}, (400, "walletUserId or publicKeyJwk is needed")),
        ({"walletUserId": 10**9}, (404, "wallet not found")),
        ({"publicKeyJwk": JWK, "issuerId": 10**9}, (404, "issuer not found")),
        ({"publicKeyJwk": JWK, "issuerDid": "did:key:z"}, (404, "issuer not found")),
        ({"publicKeyJwk": JWK, "issuerId": True}, (400, "invalid issuerId")),
    ],
)  # fmt: skip
def test_malformed_holders(tenant: Tenant, fields: dict[str, Any], refusal: tuple[int, str]) -> None:
    """A holder is refused if it has a private key, no key, or an unknown issuer or wallet."""
    assert refuse_creation(tenant, HOLDER_DID, {"method": "key", **fields}) == refusal


def test_an_issuer_by_its_did(tenant: Tenant) -> None:
    """If issuerId is 0, the issuer is selected by issuerDid."""
    by = issuer(tenant)
    made = create(
        tenant, HOLDER_DID, {"method": "key", "name": "Alice", "publicKeyJwk": JWK, "issuerId": 0, "issuerDid": by}
    )
    own, held = tenant.ask(LIST, domainId=tenant.domain)
    assert (own["did"], held["did"], held["issuerId"]) == (by, made["id"], own["id"])


def test_search(tenant: Tenant) -> None:
    """A search finds the DIDs of the tenant by name, kind and page, with lastUpdatedAt. It finds no DID of another
    tenant.
    """
    by, held = issuer(tenant), holder(tenant)
    issuer(tenant.world.tenant("other"))
    answer = tenant.ask(SEARCH, name="", didType="ISSUER", pageNumber=1, pageSize=10)
    assert answer["count"] == 1
    assert answer["didList"][0]["did"] == by
    assert re.fullmatch(r"\d\d-\d\d-\d{4} \d\d:\d\d:\d\d", answer["didList"][0]["lastUpdatedAt"])
    assert [each["did"] for each in tenant.ask(SEARCH)["didList"]] == [by, held]
    assert tenant.ask(SEARCH, name="lice", didType="user")["count"] == 1
    assert tenant.ask(SEARCH, name="lice", pageNumber=2)["didList"] == []
    assert tenant.refused(SEARCH, didType="hunter2") == (400, "invalid didType")
    (own,) = tenant.ask(SEARCH, didType="issuer", domainId=tenant.domain)["didList"]
    assert [each["did"] for each in tenant.ask(SEARCH, didId=own["id"])["didList"]] == [by]
    assert tenant.ask(SEARCH, didId=own["id"], didType="user") == {"count": 0, "didList": []}
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    assert tenant.ask(SEARCH, domainId=branch) == {"count": 0, "didList": []}
    other = tenant.world.tenant("other")
    assert tenant.refused(SEARCH, domainId=other.domain) == (403, "domain not in tenant")
    assert other.ask(SEARCH, didId=own["id"]) == {"count": 0, "didList": []}
    assert tenant.refused(SEARCH, pageSize=1001) == (400, "invalid pageSize")


def test_deletion(tenant: Tenant) -> None:
    """One or several DIDs are deleted. If one of them is unknown, none is deleted. The message has the number of
    deleted DIDs.
    """
    by, held = issuer(tenant), holder(tenant)
    one = {"type": "Issuer", "did": by}
    assert tenant.refused(
        DELETE, method="DELETE", domainId=tenant.domain, dids=[one, {"type": "Issuer", "did": held}]
    ) == (
        404,
        "DID not found",
    )
    wanted = [one, {"type": "User", "did": held}]
    assert tenant.ask(DELETE, method="DELETE", domainId=tenant.domain, dids=wanted) == {
        "code": 200, "message": "2 DIDs deleted", "status": "Success",
    }  # fmt: skip
    assert tenant.ask(LIST, domainId=tenant.domain) == []
    assert tenant.refused(DELETE, method="DELETE", domainId=tenant.domain, dids=[{"type": "x", "did": by}])[0] == 400
    assert tenant.refused(DELETE, method="DELETE", domainId=tenant.domain, dids=[])[0] == 400


def test_our_did_web_is_served(tenant: Tenant) -> None:
    """The document of a did:web is public at the address that the DID names. After a rotation the document has both
    keys.
    """
    by = issuer(tenant, "web")
    path = "/" + "/".join(by.split(":")[3:]) + "/did.json"
    before = read_public(tenant, path)
    assert before.headers["content-type"] == "application/did+json"
    (old,) = parse(by, before.content).methods
    made = tenant.ask(ROTATE, domainId=tenant.domain, did=by)
    after = parse(by, read_public(tenant, path).content).methods
    assert {each.id for each in after} == {old.id, made["verificationMethod"]}
    assert tenant.refused(ROTATE, domainId=tenant.domain, did=issuer(tenant))[0] == 400


@pytest.mark.parametrize("encoded", [False, True])
def test_resolution(tenant: Tenant, encoded: bool) -> None:
    """A caller with a token resolves a DID in any URL encoding."""
    for did in (issuer(tenant), issuer(tenant, "web"), issuer(tenant, "jwk"), DID):
        path = RESOLVE + (quote(did, safe="") if encoded else did)
        answer = tenant.world.http.get(path, headers={"x-authorization": tenant.token})
        assert answer.status_code == 200, answer.text
        assert answer.json()["didDocument"]["id"] == did
        assert answer.json()["didResolutionMetadata"] == {"contentType": "application/did+json"}
        assert problem(tenant.world.http.get(path)) == (401, "missing token")


@pytest.mark.parametrize("did", ["did:ion:x", "did:web:169.254.169.254", "did:key:zz", "nothing", "did:web:a%252F..:x"])
def test_unresolvable_dids(tenant: Tenant, did: str) -> None:
    """Other methods, other hosts and malformed DIDs are answered with 400, and no request is sent to another host."""
    answer = tenant.world.http.get(RESOLVE + did, headers={"x-authorization": tenant.token})
    assert problem(answer)[0] == 400


def test_a_new_schema(tenant: Tenant) -> None:
    """The answer has the credential schema. It is listed, and it is public with its author's proof."""
    by = issuer(tenant)
    made = schema(tenant, by)
    content = made["Schema"]
    assert isinstance(made["id"], int)
    assert {"id", "version", "name", "author", "authored", "type", "Schema", "proof"} == content.keys()
    assert content["author"] == by and content["version"] == "1.0" and content["name"] == "Badge"
    assert content["Schema"] == {"$id": content["Schema"]["$id"], **JSON_SCHEMA}
    assert read_public(tenant, content["Schema"]["$id"]).json() == content
    assert tenant.ask(SCHEMAS, domainId=tenant.domain, issuerDid=by) == [
        {"id": made["id"], "name": "Badge", "author": by, "authorName": "The issuer", "signed": True}
    ]
    assert tenant.ask(SCHEMAS, domainId=tenant.domain, issuerDid=issuer(tenant)) == []
    assert [each["id"] for each in tenant.ask(SCHEMAS, domainId=tenant.domain, filter="ADG")] == [made["id"]]
    assert tenant.ask(SCHEMAS, domainId=tenant.domain, filter="zzyzx") == []
    assert "proof" not in schema(tenant, by, sign=False)["Schema"]


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": {"$ref": "http://169.254.169.254/"}}, {"schema": {"pattern": "(?=a)b"}}, {"schema": "hunter2"},
        {"schema": {"type": "hunter2"}}, {"schema": {"enum": ["x" * 100_000]}}, {"name": ""}, {"sign": "maybe"},
    ],
)  # fmt: skip
def test_malformed_schemas(tenant: Tenant, fields: dict[str, Any]) -> None:
    """Remote references, unsupported patterns and malformed schemas are answered with 400. The message does not repeat
    the value.
    """
    sent = {"author": issuer(tenant), "name": "n", "schema": {}, **fields}
    answer = tenant.world.send("POST", SCHEMA, tenant.token, json=sent)
    assert answer.status_code == 400
    assert "hunter2" not in answer.text


def test_a_schema_of_an_unknown_author(tenant: Tenant) -> None:
    """The author of a schema must be an issuer of the tenant."""
    other = issuer(tenant.world.tenant("other"))
    for author in (other, holder(tenant), "did:key:z6Mk"):
        assert tenant.refused(SCHEMA, author=author, name="n", schema={}) == (404, "issuer not found")


@pytest.mark.parametrize("path", ISSUE)
def test_a_new_credential(tenant: Tenant, path: str) -> None:
    """A credential is listed, read as a document, and verified with only public addresses.

    None of these answers contains its password.
    """
    sent = body(tenant)
    made = tenant.ask(path, **sent)
    assert made == {
        "code": 200, "message": "credential issued", "status": "Success", "id": made["id"],
        "credentialId": made["credentialId"],
    }  # fmt: skip
    answer = tenant.ask(CREDENTIALS, domainId=tenant.domain)
    assert answer == {
        "code": 200, "message": "1 credential", "status": "Success", "domainId": tenant.domain, "count": 1,
        "credentials": [
            {
                "id": made["id"], "issuerId": answer["credentials"][0]["issuerId"], "issuerName": "The issuer",
                "schemaId": sent["schemaId"], "schemaName": "Badge", "credentialId": made["credentialId"],
                "name": "Badge", "status": "ACTIVE", "expired": False,
                "issuedAt": answer["credentials"][0]["issuedAt"], "expireDate": "2999-01-01T00:00:00Z",
                "issuerDid": sent["issuerDid"], "holderDid": DID, "epmUsername": "alice",
            }
        ],
    }  # fmt: skip
    read = tenant.ask(GET, credentialId=made["credentialId"])
    assert read["id"] == made["id"]
    assert tenant.ask(GET, credentialId=str(made["id"])) == read
    document = read["credential"]
    token = jws.parse(document["proof"]["jws"])
    held = vc.verify(token, resolve(did_of(token.key_id)), now_us())
    assert held.document == {name: value for name, value in document.items() if name != "proof"}
    assert document["expirationDate"] == "2999-01-01T00:00:00Z"
    assert document["credentialSubject"] == {"id": DID, "epmUsername": "alice", "holderDID": DID, "holderId": "17"}
    assert "hunter2" not in str(read)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"expiry": "hunter2"}, (400, "invalid expiry")), ({"expiry": "2001-01-01T00:00:00Z"}, (400, "invalid expiry")),
        ({"metadata": ["hunter2"]}, (400, "invalid metadata")),
        ({"metadata": {"id": "did:x:y"}}, (400, "invalid metadata")),
        ({"metadata": {"holderDID": "did:x:y"}}, (400, "invalid metadata")),
        ({"metadata": {"holderDID": ["hunter2"]}}, (400, "invalid metadata")),
        ({"metadata": {"epmUsername": "hunter2" * 9}}, (400, "metadata does not meet the schema")),
        ({"metadata": {"x": "y" * 40_000}}, (400, "invalid metadata")),
        ({"schemaId": 10**9}, (404, "schema not found")), ({"issuerDid": DID}, (404, "issuer not found")),
        ({"holderDid": "did:key:z6Mk", "metadata": {}}, (404, "holder not found")),
        ({"credentialName": ""}, (400, "invalid credentialName")),
    ],
)  # fmt: skip
def test_malformed_credentials(tenant: Tenant, fields: dict[str, Any], refusal: tuple[int, str]) -> None:
    """A malformed field is answered with 400 and its value is not repeated. An id that is unknown in the domain is
    answered with 404. Nothing is issued.
    """
    assert tenant.refused(ISSUE[0], **body(tenant, **fields)) == refusal
    assert tenant.ask(CREDENTIALS, domainId=tenant.domain)["count"] == 0


def test_expiry_may_be_left_out(tenant: Tenant) -> None:
    """A credential does not expire if its expiry is missing or empty."""
    made = tenant.ask(ISSUE[0], **body(tenant, expiry=""))
    assert "expirationDate" not in tenant.ask(GET, credentialId=made["credentialId"])["credential"]


@pytest.mark.parametrize("fields", [{}, {"userId": 0}, {"pageNumber": 2, "pageSize": 1}])
def test_the_total_of_an_array_is_in_a_header(tenant: Tenant, fields: dict[str, Any]) -> None:
    """DIDList and credentialSchemaList send the total of the whole list in X-Total-Count."""
    by = issuer(tenant)
    for _ in range(2):
        schema(tenant, by)
    issuer(tenant)
    for path in (LIST, SCHEMAS):
        answer = tenant.world.post(path, tenant.token, json=tenant.scoped(domainId=tenant.domain, **fields))
        assert (answer.status_code, answer.headers["x-total-count"]) == (200, "2"), path


def test_pages_of_credentials(tenant: Tenant) -> None:
    """Pages are ordered by id and contain the total."""
    sent = body(tenant)
    made = [tenant.ask(ISSUE[0], **sent)["id"] for _ in range(3)]
    answer = tenant.ask(CREDENTIALS, domainId=tenant.domain, pageNumber=2, pageSize=2)
    assert ([each["id"] for each in answer["credentials"]], answer["count"]) == (made[2:], 3)


def test_a_revoked_credential_is_in_the_status_list(tenant: Tenant) -> None:
    """A revoked credential is in both forms of the public status list.

    The status in the answer is capitalized, and a second revocation succeeds.
    """
    sent = body(tenant)
    made = tenant.ask(ISSUE[0], **sent)
    document = tenant.ask(GET, credentialId=made["credentialId"])["credential"]
    entry = entry_of(document)

    def listed() -> vc.Credential:
        token = jws.parse(read_public(tenant, entry.url, accept="application/jwt").text)
        return vc.verify(token, resolve(did_of(token.key_id)), now_us())

    check(entry, listed(), sent["issuerDid"])
    wanted = {"vcid": made["id"], "domainId": tenant.domain, "issuerDid": sent["issuerDid"], "holderDid": DID}
    assert tenant.refused(REVOKE, **{**wanted, "holderDid": sent["issuerDid"]}) == (404, "credential not found")
    for _ in range(2):
        assert tenant.ask(REVOKE, **wanted) == {"Message": "credential revoked", "Code": 200, "Status": "Success"}
    with pytest.raises(Exception, match="revoked"):
        check(entry, listed(), sent["issuerDid"])
    assert tenant.ask(CREDENTIALS, domainId=tenant.domain)["credentials"][0]["status"] == "Revoked"
    assert read_object(read_public(tenant, entry.url).content)["id"] == entry.url


def test_another_tenants_objects(tenant: Tenant) -> None:
    """For an object of another tenant the answer is 404, whether it is given by number, by URN or by DID."""
    sent = body(tenant)
    made = tenant.ask(ISSUE[0], **sent)
    other = tenant.world.tenant("other")
    for name in (made["credentialId"], str(made["id"])):
        assert other.refused(GET, credentialId=name) == (404, "credential not found")
    wanted = {"vcid": made["id"], "domainId": other.domain, "issuerDid": sent["issuerDid"], "holderDid": DID}
    assert other.refused(REVOKE, **wanted) == (404, "credential not found")
    assert other.refused(ISSUE[0], **{**sent, "domainId": other.domain}) == (404, "schema not found")
    assert other.refused(ISSUE[0], **sent) == (403, "domain not in tenant")


def test_a_credential_of_a_domain(tenant: Tenant) -> None:
    """With a domainId, GetCredential finds only the credentials of that domain."""
    made = tenant.ask(ISSUE[0], **body(tenant))
    assert tenant.ask(GET, credentialId=str(made["id"]), domainId=tenant.domain)["id"] == made["id"]
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    wanted = {"credentialId": str(made["id"]), "domainId": branch}
    assert tenant.refused(GET, **wanted) == (404, "credential not found")
    assert tenant.world.tenant("other").refused(GET, **wanted) == (403, "domain not in tenant")


@pytest.mark.parametrize("path", OF_WALLET)
def test_an_unknown_wallet(tenant: Tenant, path: str) -> None:
    """An unknown wallet is answered with 404, and a malformed page is answered with 400."""
    assert tenant.refused(path, walletId=10**9)[0] == 404
    assert tenant.refused(path, walletId=1, pageNumber=0) == (400, "invalid pageNumber")


@pytest.mark.parametrize("curve", ISSUERS)
def test_each_curve_issues(tenant: Tenant, curve: str) -> None:
    """For each curve, an issuer issues credentials that verify."""
    sent = body(tenant)
    by = issuer(tenant, keyType=curve)
    made = tenant.ask(ISSUE[0], **{**sent, "issuerDid": by, "schemaId": schema(tenant, by)["id"]})
    token = jws.parse(tenant.ask(GET, credentialId=made["credentialId"])["credential"]["proof"]["jws"])
    assert vc.verify(token, resolve(by), now_us()).issuer == by


@pytest.mark.parametrize("name", ["epmpassword", "epmPasword", "epm_password"])
def test_a_misspelled_password_does_not_become_a_claim(tenant: Tenant, name: str) -> None:
    """A near miss of epmPassword in the metadata is refused: as a claim, everybody could read it."""
    sent = body(tenant)
    metadata = {**sent["metadata"], name: "hunter2"}
    metadata.pop("epmPassword", None)
    status, text = tenant.refused(ISSUE[0], **{**sent, "metadata": metadata})
    assert (status, text) == (400, "invalid metadata")
