"""JSONPath: what the paths of definitions find, by the examples of RFC 9535."""

from typing import Any

import pytest
from pydantic import JsonValue

from sallyport.did.presentations.exchange import compiled, found

NAMES: JsonValue = {"o": {"j j": {"k.k": 3}}, "'": {"@": 2}}
CHILDREN: JsonValue = {"o": {"j": 1, "k": 2}, "a": [5, 3]}
ITEMS: JsonValue = ["a", "b"]
DESCENDANTS: JsonValue = {"o": {"j": 1, "k": 2}, "a": [5, 3, [{"j": 4}, {"k": 6}]]}
OBJECTS: list[JsonValue] = [{"j": 1, "k": 2}, [5, 3, [{"j": 4}, {"k": 6}]]]
NULLS: JsonValue = {"a": None, "b": [None], "c": [{}], "null": 1}


@pytest.mark.parametrize(
    ("path", "document", "found"),
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
def test_what_a_path_finds(path: str, document: JsonValue, found: list[JsonValue]) -> None:
    """The nodes that the RFC gives, in any order: that of an object's members is left open."""
    assert isinstance(document, list | dict)
    nodes = [match.obj for match in compiled(path).finditer(document)]
    assert sorted(map(repr, nodes)) == sorted(map(repr, found))


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
