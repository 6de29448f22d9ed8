"""Definitions: the content of ours, and the limits of those from outside."""

import json
from typing import Any

import pytest

from sallyport.base.errors import Invalid
from sallyport.did.presentations.definition import for_credential, read
from sallyport.did.presentations.exchange import compiled

ISSUER = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"


def definition(**fields: Any) -> dict[str, Any]:
    """A definition of one descriptor with one field."""
    field = {"id": "name", "path": ["$.credentialSubject.epmUsername"], **fields}
    return {"id": "d", "input_descriptors": [{"id": "i", "constraints": {"fields": [field]}}]}


def test_ours_has_the_interfaces_shape() -> None:
    """id, input_descriptors with id, name, purpose, format jwt_vc with algorithms, fields with id and paths in both
    forms; a filter only where a value is wanted."""
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
def test_plain_paths_are_taken(path: str) -> None:
    """Names, indexes, wildcards and one descent."""
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
def test_a_path_that_may_blow_up_is_refused(path: str) -> None:
    """Lists of selectors, several descents, filters, slices, length: refused before a document is touched, and the
    refusal does not repeat it."""
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
def test_a_filter_compares(wanted: dict[str, Any]) -> None:
    """No regular expressions, references or combinations, and no nonsense."""
    with pytest.raises(Invalid):
        read(json.dumps(definition(filter=wanted)))


def limited() -> dict[str, Any]:
    """A definition that requires limited disclosure."""
    made = definition()
    made["input_descriptors"][0]["constraints"]["limit_disclosure"] = "required"
    return made


def descriptors_twice() -> dict[str, Any]:
    """A definition with a descriptor twice."""
    made = definition()
    made["input_descriptors"] *= 2
    return made


def fields_twice() -> dict[str, Any]:
    """A definition with a field twice."""
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
def test_what_cannot_be_met_is_refused(wrong: object) -> None:
    """Limited disclosure, ids that are not unique, no descriptor and too many paths are refused."""
    with pytest.raises(Invalid):
        read(json.dumps(wrong))
