"""Presentation definitions that the service makes, and the limits for definitions of others."""

import json
from typing import Any

import pytest

from sallyport.areas.did.presentations.definition import for_credential, read
from sallyport.areas.did.presentations.exchange import compiled
from sallyport.base.errors import Invalid

ISSUER = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"


def definition(**fields: Any) -> dict[str, Any]:
    """Return a definition of one descriptor with one field."""
    field = {"id": "name", "path": ["$.credentialSubject.epmUsername"], **fields}
    return {"id": "d", "input_descriptors": [{"id": "i", "constraints": {"fields": [field]}}]}


def test_a_definition_has_the_documented_form() -> None:
    """A descriptor has an id, a name, a purpose, the format jwt_vc with its algorithms, and fields with paths for both
    forms. A field has a filter only if a value is required.
    """
    made = for_credential("Credential", "Login", {"$.issuer": ISSUER, "$.credentialSubject.epmUsername": None})
    content = json.loads(made.text)
    (descriptor,) = content["input_descriptors"]
    assert (descriptor["name"], descriptor["purpose"]) == ("Credential", "Login")
    assert descriptor["format"] == {"jwt_vc": {"alg": ["EdDSA", "ES256", "ES256K"]}}
    assert descriptor["constraints"]["fields"] == [
        {
            "id": "issuer",
            "path": ["$.issuer", "$.vc.issuer"],
            "filter": {"type": "string", "const": ISSUER},
        },
        {
            "id": "credentialSubject.epmUsername",
            "path": ["$.credentialSubject.epmUsername", "$.vc.credentialSubject.epmUsername"],
        },
    ]
    assert read(json.dumps(content)) == made
    assert for_credential("Credential", "Login", {}).id != made.id


@pytest.mark.parametrize(
    "path",
    [
        "$.vc.credentialSubject.epmUsername",
        "$['vc']['issuer']",
        "$.vc.type[0]",
        "$.vc.type[-1]",
        "$..issuer",
        "$.*",
        "$",
    ],
)
def test_a_simple_path_is_accepted(path: str) -> None:
    """A path of names, indexes, wildcards and one descent is accepted."""
    assert read(json.dumps(definition(path=[path]))).input_descriptors[0].constraints.fields[0].path == [path]


@pytest.mark.parametrize(
    "path",
    [
        "$" + "[*,*]" * 16,
        "$" + "..*" * 8,
        "$..a..b",
        "$[?@.a == 'b']",
        "$[?search(@.a, '(a+)+$')]",
        "$[0:1000000]",
        "$['a','a']",
        "$" + ".a" * 17,
        "$." + "a" * 255,
        "credentialSubject",
        "",
        "$[",
        "$" + "(" * 200,
    ],
)
def test_an_expensive_path_is_refused(path: str) -> None:
    """A path is refused before it is evaluated if it has a list of selectors, several descents, a filter or a slice, or
    if it is too long or malformed. The message does not contain the path.
    """
    with pytest.raises(ValueError):
        compiled(path)
    with pytest.raises(Invalid) as error:
        read(json.dumps(definition(path=[path])))
    assert len(path) < 4 or path not in repr(error.value.fields)


@pytest.mark.parametrize(
    "wanted",
    [
        {"pattern": "(a+)+$"},
        {"$ref": "https://example.com/schema"},
        {"allOf": [{"const": "a"}]},
        {"type": "no type"},
        {"minLength": "x"},
    ],
)
def test_a_filter_only_compares(wanted: dict[str, Any]) -> None:
    """A filter may only compare. Regular expressions, references, combinations and malformed filters are refused."""
    with pytest.raises(Invalid):
        read(json.dumps(definition(filter=wanted)))


def limited() -> dict[str, Any]:
    """Return a definition that requires limited disclosure."""
    made = definition()
    made["input_descriptors"][0]["constraints"]["limit_disclosure"] = "required"
    return made


def descriptors_twice() -> dict[str, Any]:
    """Return a definition that has two descriptors with the same ID."""
    made = definition()
    made["input_descriptors"] *= 2
    return made


def fields_twice() -> dict[str, Any]:
    """Return a definition that has two fields with the same ID."""
    made = definition()
    made["input_descriptors"][0]["constraints"]["fields"] *= 2
    return made


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(limited(), id="limited disclosure"),
        pytest.param(descriptors_twice(), id="a descriptor twice"),
        pytest.param(fields_twice(), id="a field twice"),
        pytest.param(definition(path=["$.a"] * 9), id="nine paths"),
        pytest.param({"id": "d", "input_descriptors": []}, id="empty descriptors"),
        pytest.param({"id": "d"}, id="no descriptors"),
        pytest.param([], id="a list"),
        pytest.param("x", id="a text"),
        pytest.param(None, id="null"),
    ],
)
def test_an_unsupported_definition_is_refused(wrong: object) -> None:
    """A definition is refused if it requires limited disclosure, has duplicate IDs, lacks a descriptor, or has too many
    paths.
    """
    with pytest.raises(Invalid):
        read(json.dumps(wrong))
