"""`sallyport did`, `sallyport schema` and `sallyport credential`: the commands of an issuer."""

import json
from pathlib import Path

import pytest

from tests.areas.did.crypto.signers import HOLDER
from tests.cli import Service, add_domain

DID = HOLDER.method_id.partition("#")[0]


@pytest.fixture
def domain(service: Service, request: pytest.FixtureRequest) -> str:
    """Return the ID of a new domain."""
    return add_domain(service, request.node.name)


def issuer(service: Service, domain: str, *options: str) -> str:
    """Create an issuer, and return its DID. The whole output of the command is the DID."""
    return service.ok("did", "create", "The issuer", "--domain", domain, *options).strip()


def rows(service: Service, kind: str, domain: str) -> list[dict[str, object]]:
    """Return a list as JSON."""
    found: list[dict[str, object]] = json.loads(service.ok(kind, "list", "--domain", domain, "--json"))
    return found


def test_a_credential_is_issued_and_revoked(service: Service, domain: str) -> None:
    """Each step uses the output of the step before it. The password is not a claim of the credential."""
    by = issuer(service, domain)
    schema = Path(service.directory) / "schema.json"
    schema.write_text('{"required": ["epmUsername"]}', encoding="utf-8")
    number = service.ok("schema", "add", "Badge", str(schema), "--domain", domain, "--issuer", by).strip()
    listed = {"id": int(number), "name": "Badge", "author": by, "authorName": "The issuer", "signed": True}
    assert rows(service, "schema", domain) == [listed]
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
    """Create a DID for HOLDER in a domain. The service does not have its key."""
    service.post(
        "/api/v1/did/createHolderDid",
        {"domainId": int(domain), "method": "key", "name": "Alice", "publicKeyJwk": HOLDER.key.public.jwk},
    )


def test_issuers_are_rotated_and_deleted(service: Service, domain: str) -> None:
    """A did:web gets a new key, and a did:key cannot be rotated. A deleted issuer is not listed."""
    web, key = issuer(service, domain, "--method", "web"), issuer(service, domain, "--key-type", "P-256")
    assert service.ok("did", "rotate", web, "--domain", domain).startswith(f"{web}#z6Mk")
    assert service.cli("did", "rotate", key, "--domain", domain).returncode == 1
    service.ok("did", "delete", web, "--domain", domain)
    assert [each["did"] for each in rows(service, "did", domain)] == [key]
    assert service.cli("did", "delete", key, "--domain", domain, "--holder").returncode == 1


@pytest.mark.parametrize("claims", [["x"], ["=x"], ["a=1", "a=2"], ["epmPassword=hunter2"]])
def test_invalid_claims_are_wrong_usage(service: Service, claims: list[str]) -> None:
    """For invalid claims the exit status is 2, and no request is sent."""
    options = [part for each in claims for part in ("--claim", each)]
    wanted = ("n", "--domain", "1", "--issuer", "i", "--holder", "h", "--schema", "1")
    assert service.cli("credential", "issue", *wanted, *options).returncode == 2
    assert service.cli("credential", "issue", *wanted, "--password", "hunter2").returncode == 2


def test_an_invalid_schema_is_refused(service: Service, domain: str) -> None:
    """Text that is not JSON and a schema with a remote reference are refused with exit status 1."""
    by = issuer(service, domain)
    path = Path(service.directory) / "none.json"
    for text in ("{", '{"$ref": "http://example.test"}'):
        path.write_text(text, encoding="utf-8")
        done = service.cli("schema", "add", "n", str(path), "--domain", domain, "--issuer", by)
        assert (done.returncode, done.stdout) == (1, "")
        assert "schema" in done.stderr
