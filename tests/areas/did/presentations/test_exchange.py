"""Presentation Exchange 2.1.1: which credentials satisfy a definition, and JSONPath (RFC 9535)."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from sallyport.areas.did.presentations.definition import Definition, for_credential, read
from sallyport.areas.did.presentations.exchange import compiled, found, satisfies

DOCUMENT: dict[str, JsonValue] = {
    "issuer": "did:example:issuer",
    "type": ["VerifiableCredential", "Access"],
    "credentialSubject": {"id": "did:example:ann", "epmUsername": "ann", "level": 3},
}
PAYLOAD: dict[str, JsonValue] = {"iss": "did:example:issuer", "vc": DOCUMENT}


def definition(*fields: dict[str, Any], **descriptor: Any) -> Definition:
    """Return a definition that has one descriptor with these fields."""
    made = {"id": "i", "constraints": {"fields": list(fields)}, **descriptor}
    return read(json.dumps({"id": "d", "input_descriptors": [made]}))


@pytest.mark.parametrize("form", [DOCUMENT, PAYLOAD], ids=["document", "payload"])
@pytest.mark.parametrize(("username", "met"), [("ann", True), (None, True), ("bob", False)])
def test_our_definition_matches_both_forms(form: dict[str, JsonValue], username: str | None, met: bool) -> None:
    """The requested values are found both in a document and in the payload of its token."""
    ours = for_credential("n", "p", {"$.issuer": "did:example:issuer", "$.credentialSubject.epmUsername": username})
    assert satisfies(ours, form, "EdDSA") is met


def test_a_document_path_does_not_match_a_token() -> None:
    """In the payload of a token the credential is under `vc`. So a path for documents does not match a token, and a
    definition has paths for both forms.
    """
    short = definition({"path": ["$.credentialSubject.epmUsername"]})
    assert satisfies(short, DOCUMENT, "EdDSA") and not satisfies(short, PAYLOAD, "EdDSA")


def test_paths_are_tried_in_order() -> None:
    """The first value of each path is tested. If the filter refuses it, the next path is tried."""
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
def test_a_required_field_must_match(field: dict[str, Any], met: bool) -> None:
    """A credential that has no value for a field does not match, unless the field is optional. If the field has a
    filter, the value must satisfy it.
    """
    assert satisfies(definition(field), DOCUMENT, "EdDSA") is met


def test_all_fields_must_match_one_credential() -> None:
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
def test_the_algorithm_must_be_a_requested_one(formats: dict[str, Any], alg: str, met: bool) -> None:
    """EdDSA and Ed25519 name the same algorithm. A credential with another algorithm or format does not match."""
    assert satisfies(definition({"path": ["$.issuer"]}, format=formats), DOCUMENT, alg) is met


def test_a_descent_into_a_deep_document_finds_nothing() -> None:
    """A document that is deeper than the library's limit does not match, and no error is raised."""
    deep: JsonValue = "end"
    for _ in range(400):
        deep = {"a": deep}
    assert isinstance(deep, dict)
    assert not satisfies(definition({"path": ["$..nothing"]}), deep, "EdDSA")


# --- JSONPath: the examples of RFC 9535 -------------------------------------------------------------------------------

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
        ("$.o[0]", CHILDREN, []),  # an index selects only from an array, and a name only from an object (section 2.3)
        ("$.a['0']", CHILDREN, []),
        ("$['\\u263a']", {"\u263a": 1}, [1]),  # escapes (section 2.3.1.2)
        ("$['\\uD834\\uDD1E']", {"\U0001d11e": 1}, [1]),
        ("$.\u263a", {"\u263a": 1}, [1]),
        ("$ ['o'] .j", {"o": {"j": 1}}, [1]),  # a space before a segment is allowed (section 2.1.1)
    ],
)
def test_a_path_selects_the_nodes_of_the_rfc(path: str, document: JsonValue, values: list[JsonValue]) -> None:
    """A path selects the nodes that the RFC gives. Their order is not tested, because the RFC does not define the order
    of an object's members.
    """
    assert isinstance(document, list | dict)
    nodes = [match.obj for match in compiled(path).finditer(document)]
    assert sorted(map(repr, nodes)) == sorted(map(repr, values))


@pytest.mark.parametrize(
    "path",
    [
        " $",  # section 2.1.1: no spaces around a query
        "$ ",
        "$ . a",  # no spaces within a segment
        "$.",
        "$..",
        "$.1a",
        "$.&",
        "$a",
        "$[a]",
        "$['a",
        "$[\"a']",
        "$['\\a']",
        "$['\\uD834']",  # one half of a surrogate pair
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
def test_a_malformed_path_is_refused(path: str) -> None:
    """A path that the grammar of the RFC does not allow is refused."""
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
def test_the_first_value_of_a_path(path: str, value: list[object]) -> None:
    """If a path matches several values, the first one is returned. null counts as a value. A path without a match has
    no value.
    """
    assert found(path, CREDENTIAL) == value


def test_a_path_into_a_deep_document_has_no_value() -> None:
    """If a document is deeper than the library's limit, the path has no value, and no error is raised."""
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep}
    assert found("$..b", deep) == []
