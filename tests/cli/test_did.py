"""`sallyport did`, `sallyport schema`, `sallyport credential`: an issuer's work from a terminal."""

import json
from pathlib import Path

import pytest

from tests.cli import Service, add_domain
from tests.did.crypto.signers import HOLDER

DID = HOLDER.method_id.partition("#")[0]


@pytest.fixture
def domain(service: Service, request: pytest.FixtureRequest) -> str:
    """The id of a domain of the test's own, with HOLDER's DID."""
    return add_domain(service, request.node.name)


def issuer(service: Service, domain: str, *options: str) -> str:
    """A new issuer's DID, which is all that is printed."""
    return service.ok("did", "create", "The issuer", "--domain", domain, *options).strip()


def rows(service: Service, kind: str, domain: str) -> list[dict[str, object]]:
    """A list as JSON."""
    found: list[dict[str, object]] = json.loads(service.ok(kind, "list", "--domain", domain, "--json"))
    return found


def test_from_an_issuer_to_a_revocation(service: Service, domain: str) -> None:
    """Each step prints what the next one takes; the password is no claim."""
    by = issuer(service, domain)
    schema = Path(service.directory) / "schema.json"
    schema.write_text('{"required": ["epmUsername"]}', encoding="utf-8")
    number = service.ok("schema", "add", "Badge", str(schema), "--domain", domain, "--issuer", by).strip()
    assert rows(service, "schema", domain) == [{"id": int(number), "name": "Badge", "author": by, "signed": True}]
    wanted = ("Badge", "--domain", domain, "--issuer", by, "--schema", number)
    stranger = service.cli("credential", "issue", *wanted, "--holder", DID, "--claim", "epmUsername=ann")
    assert (stranger.returncode, stranger.stdout) == (1, "")
    assert "not found; see: sallyport did list" in stranger.stderr
    holder_of(service, domain)
    unfit = service.cli("credential", "issue", *wanted, "--holder", DID)
    assert (unfit.returncode, unfit.stdout) == (1, "")
    made = service.cli(
        "credential",
        "issue",
        *wanted,
        "--holder",
        DID,
        "--claim",
        "epmUsername=ann",
        "--password",
        "-",
        input="hunter2\n",
    )
    assert made.returncode == 0, made.stderr
    credential = made.stdout.strip()
    document = json.loads(service.ok("credential", "show", credential, "--domain", domain))
    assert document["credentialSubject"] == {"id": DID, "epmUsername": "ann"}
    assert "hunter2" not in str(document)
    (listed,) = rows(service, "credential", domain)
    assert (listed["epmUsername"], listed["status"]) == ("ann", "ACTIVE")
    huge = service.cli("credential", "revoke", "9" * 20, "--domain", domain)
    assert huge.returncode == 1 and "credential not found" in huge.stderr
    other = add_domain(service, "other")
    assert service.cli("credential", "show", credential, "--domain", other).returncode == 1
    service.ok("credential", "revoke", str(listed["credentialId"]), "--domain", domain)
    assert [each["status"] for each in rows(service, "credential", domain)] == ["Revoked"]


def holder_of(service: Service, domain: str) -> None:
    """HOLDER's DID in a domain, whose key is in no wallet of the service."""
    service.post(
        "/api/v1/did/createHolderDid",
        {"domainId": int(domain), "method": "key", "name": "Alice", "publicKeyJwk": HOLDER.key.public.jwk},
    )


def test_rotation_and_deletion(service: Service, domain: str) -> None:
    """A did:web gets another key; a deleted issuer is not listed; a did:key cannot be rotated."""
    web, key = issuer(service, domain, "--method", "web"), issuer(service, domain, "--key-type", "P-256")
    assert service.ok("did", "rotate", web, "--domain", domain).startswith(f"{web}#z6Mk")
    assert service.cli("did", "rotate", key, "--domain", domain).returncode == 1
    service.ok("did", "delete", web, "--domain", domain)
    assert [each["did"] for each in rows(service, "did", domain)] == [key]
    assert service.cli("did", "delete", key, "--domain", domain, "--holder").returncode == 1


@pytest.mark.parametrize("claims", [["x"], ["=x"], ["a=1", "a=2"], ["epmPassword=hunter2"]])
def test_claims_that_are_none(service: Service, claims: list[str]) -> None:
    """Wrong usage is 2, and asks nobody."""
    options = [part for each in claims for part in ("--claim", each)]
    wanted = ("n", "--domain", "1", "--issuer", "i", "--holder", "h", "--schema", "1")
    assert service.cli("credential", "issue", *wanted, *options).returncode == 2
    assert service.cli("credential", "issue", *wanted, "--password", "hunter2").returncode == 2


def test_a_schema_that_is_none(service: Service, domain: str) -> None:
    """Text that is no JSON, and a schema that refers elsewhere, are told."""
    by = issuer(service, domain)
    path = Path(service.directory) / "none.json"
    for text in ("{", '{"$ref": "http://example.test"}'):
        path.write_text(text, encoding="utf-8")
        done = service.cli("schema", "add", "n", str(path), "--domain", domain, "--issuer", by)
        assert (done.returncode, done.stdout) == (1, "")
        assert "schema" in done.stderr
