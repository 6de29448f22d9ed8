"""Presentation Exchange 2.1.1: the credentials that satisfy a definition, and its paths (RFC 9535)."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from sallyport.did.presentations.definition import Definition, for_credential, read
from sallyport.did.presentations.exchange import compiled, found, satisfies

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
    ours = for_credential("n", "p", {"$.issuer": "did:example:issuer", "$.credentialSubject.epmUsername": username})
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


# --- paths: the examples of RFC 9535 ----------------------------------------------------------------------------------

NAMES: JsonValue = {"o": {"j j": {"k.k": 3}}, "'": {"@": 2}}
CHILDREN: JsonValue = {"o": {"j": 1, "k": 2}, "a": [5, 3]}
ITEMS: JsonValue = ["a", "b"]
DESCENDANTS: JsonValue = {"o": {"j": 1, "k": 2}, "a": [5, 3, [{"j": 4}, {"k": 6}]]}
OBJECTS: list[JsonValue] = [{"j": 1, "k": 2}, [5, 3, [{"j": 4}, {"k": 6}]]]
NULLS: JsonValue = {"a": None, "b": [None], "c": [{}], "null": 1}


@pytest.mark.parametrize(
    ("path", "document", "values"),
    [
        ("$", {"k": "v"}, [{"k": "v"}]),  # section 2.2.3
        ("$.o['j j']", NAMES, [{"k.k": 3}]),  # section 2.3.1.3
        ("$.o['j j']['k.k']", NAMES, [3]),
        ('$.o["j j"]["k.k"]', NAMES, [3]),
        ('$["\'"]["@"]', NAMES, [2]),
        ("$[*]", CHILDREN, [{"j": 1, "k": 2}, [5, 3]]),  # section 2.3.2.3
        ("$.o[*]", CHILDREN, [1, 2]),
        ("$.a[*]", CHILDREN, [5, 3]),
        ("$.a.*", CHILDREN, [5, 3]),
        ("$[1]", ITEMS, ["b"]),  # section 2.3.3.3
        ("$[-2]", ITEMS, ["a"]),
        ("$[2]", ITEMS, []),
        ("$[-3]", ITEMS, []),
        ("$..j", DESCENDANTS, [1, 4]),  # section 2.5.2.3
        ("$..[0]", DESCENDANTS, [5, {"j": 4}]),
        ("$..o", DESCENDANTS, [{"j": 1, "k": 2}]),
        (
            "$..*",
            DESCENDANTS,
            [
                {"j": 1, "k": 2},
                [5, 3, [{"j": 4}, {"k": 6}]],
                1,
                2,
                5,
                3,
                [{"j": 4}, {"k": 6}],
                {"j": 4},
                {"k": 6},
                4,
                6,
            ],
        ),
        ("$.a", NULLS, [None]),  # section 2.6.1
        ("$.a[0]", NULLS, []),
        ("$.a.d", NULLS, []),
        ("$.b[0]", NULLS, [None]),
        ("$.b[*]", NULLS, [None]),
        ("$.null", NULLS, [1]),
        ("$.o[0]", CHILDREN, []),  # an index is of an array alone, a name of an object (section 2.3)
        ("$.a['0']", CHILDREN, []),
        ("$['\\u263a']", {"\u263a": 1}, [1]),  # escapes (section 2.3.1.2)
        ("$['\\uD834\\uDD1E']", {"\U0001d11e": 1}, [1]),
        ("$.\u263a", {"\u263a": 1}, [1]),
        ("$ ['o'] .j", {"o": {"j": 1}}, [1]),  # a blank before a segment (section 2.1.1)
    ],
)
def test_what_a_path_finds(path: str, document: JsonValue, values: list[JsonValue]) -> None:
    """The nodes that the RFC gives, in any order: that of an object's members is left open."""
    assert isinstance(document, list | dict)
    nodes = [match.obj for match in compiled(path).finditer(document)]
    assert sorted(map(repr, nodes)) == sorted(map(repr, values))


@pytest.mark.parametrize(
    "path",
    [
        " $",  # section 2.1.1: no blanks around
        "$ ",
        "$ . a",  # nor within a segment
        "$.",
        "$..",
        "$.1a",
        "$.&",
        "$a",
        "$[a]",
        "$['a",
        "$[\"a']",
        "$['\\a']",
        "$['\\uD834']",  # half a surrogate pair
        "$['\n']",
        "$[01]",  # section 2.3.3.1
        "$[-0]",
        "$[+1]",
        "$[1.0]",
        "$[9007199254740992]",
        "$[-9007199254740992]",
        "$[]",
        "$...a",
        "@.a",
    ],
)
def test_what_is_no_path(path: str) -> None:
    """What the grammar of the RFC does not have is refused, and not guessed at."""
    with pytest.raises(ValueError, match="RFC 9535"):
        compiled(path)


CREDENTIAL: dict[str, Any] = {"issuer": "did:key:z6Mk", "vc": {"type": ["One", "Two"], "name": None}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.issuer", ["did:key:z6Mk"]),
        ("$.vc.type[*]", ["One"]),
        ("$..type[1]", ["Two"]),
        ("$.vc.name", [None]),
        ("$.holder", []),
        ("$.issuer.name", []),
    ],
)
def test_the_first_value(path: str, value: list[object]) -> None:
    """The first of several; null is a value; nothing where the credential has nothing there."""
    assert found(path, CREDENTIAL) == value


def test_a_document_too_deep_has_nothing() -> None:
    """The library's limit of depth is no error of ours."""
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep}
    assert found("$..b", deep) == []
