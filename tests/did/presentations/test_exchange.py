"""Presentation Exchange 2.1.1: which credentials a definition means."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from sallyport.did.presentations.definition import Definition, asking, read
from sallyport.did.presentations.exchange import satisfies

DOCUMENT: dict[str, JsonValue] = {
    "issuer": "did:example:issuer",
    "type": ["VerifiableCredential", "Access"],
    "credentialSubject": {"id": "did:example:ann", "epmUsername": "ann", "level": 3},
}
PAYLOAD: dict[str, JsonValue] = {"iss": "did:example:issuer", "vc": DOCUMENT}


def definition(*fields: dict[str, Any], **descriptor: Any) -> Definition:
    """A definition of one descriptor with these fields."""
    made = {"id": "i", "constraints": {"fields": list(fields)}, **descriptor}
    return read(json.dumps({"id": "d", "input_descriptors": [made]}))


@pytest.mark.parametrize("form", [DOCUMENT, PAYLOAD], ids=["document", "payload"])
@pytest.mark.parametrize(("username", "met"), [("ann", True), (None, True), ("bob", False)])
def test_ours_in_both_forms(form: dict[str, JsonValue], username: str | None, met: bool) -> None:
    """What we ask for is found in a document and in the payload of its token."""
    ours = asking("n", "p", {"$.issuer": "did:example:issuer", "$.credentialSubject.epmUsername": username})
    assert satisfies(ours, form, "EdDSA") is met


def test_the_interfaces_own_path_does_not_find_a_token() -> None:
    """Paths run on the payload, where the credential stands under vc: hence both forms."""
    short = definition({"path": ["$.credentialSubject.epmUsername"]})
    assert satisfies(short, DOCUMENT, "EdDSA") and not satisfies(short, PAYLOAD, "EdDSA")


def test_paths_are_tried_in_order() -> None:
    """The first value of each path is tested; where the filter refuses it, the next path is tried."""
    const = {"const": "Access"}
    assert not satisfies(definition({"path": ["$.type[*]"], "filter": const}), DOCUMENT, "EdDSA")
    assert satisfies(definition({"path": ["$.type[*]", "$.type[1]"], "filter": const}), DOCUMENT, "EdDSA")


@pytest.mark.parametrize(
    ("field", "met"),
    [
        ({"path": ["$.nothing"]}, False),
        ({"path": ["$.nothing"], "optional": True}, True),
        ({"path": ["$.credentialSubject.level"], "filter": {"type": "integer", "minimum": 3}}, True),
        ({"path": ["$.credentialSubject.level"], "filter": {"minimum": 4}}, False),
        ({"path": ["$.credentialSubject.level"], "filter": {"type": "string"}}, False),
        ({"path": ["$..epmUsername"], "filter": {"enum": ["ann", "bob"]}}, True),
    ],
)
def test_fields(field: dict[str, Any], met: bool) -> None:
    """A field that no path finds fails the credential unless it is optional; a filter tests the value."""
    assert satisfies(definition(field), DOCUMENT, "EdDSA") is met


def test_all_fields_of_one_credential() -> None:
    """Each of the fields must be there."""
    both = definition({"path": ["$.issuer"]}, {"path": ["$.nothing"]})
    assert not satisfies(both, DOCUMENT, "EdDSA")


@pytest.mark.parametrize(
    ("formats", "alg", "met"),
    [
        ({"jwt_vc": {"alg": ["EdDSA"]}}, "EdDSA", True),
        ({"jwt_vc": {"alg": ["EdDSA"]}}, "Ed25519", True),
        ({"jwt_vc": {"alg": ["EdDSA", "Ed25519"]}}, "ES256", False),
        ({"jwt_vc": {"alg": ["ES256"]}}, "EdDSA", False),
        ({"ldp_vc": {"proof_type": ["x"]}}, "EdDSA", False),
    ],
)
def test_the_algorithm_is_one_that_is_asked_for(formats: dict[str, Any], alg: str, met: bool) -> None:
    """EdDSA and Ed25519 are one; another algorithm or another format is not taken."""
    assert satisfies(definition({"path": ["$.issuer"]}, format=formats), DOCUMENT, alg) is met


def test_a_deep_document_is_no_error() -> None:
    """A descent into more than the library goes into finds nothing."""
    deep: JsonValue = "end"
    for _ in range(400):
        deep = {"a": deep}
    assert isinstance(deep, dict)
    assert not satisfies(definition({"path": ["$..nothing"]}), deep, "EdDSA")
