"""Schemas: which are kept, what they say of a subject, and that none takes long."""

import pytest

from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON
from sallyport.did.credentials.check import check_schema, check_subject
from sallyport.did.credentials.keywords import compiled

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def nested(levels: int) -> dict[str, JSON]:
    """A schema that is so deep."""
    found: dict[str, JSON] = {"type": "string"}
    for _ in range(levels):
        found = {"properties": {"a": found}}
    return found


def negated(levels: int, inner: dict[str, JSON]) -> dict[str, JSON]:
    """A schema in so many `not`."""
    for _ in range(levels):
        inner = {"not": inner}
    return inner


@pytest.mark.parametrize("dialect", [DRAFT_07, DRAFT_07.rstrip("#"), DRAFT_2020, None])
def test_drafts_that_are_run(dialect: str | None) -> None:
    """Drafts 07 and 2020-12 are kept, and one that names none is 2020-12."""
    schema: dict[str, JSON] = {"type": "object", "required": ["a"]}
    kept = check_schema(schema if dialect is None else {**schema, "$schema": dialect})
    assert kept["$schema"] == (dialect or DRAFT_2020)
    check_subject(kept, {"a": 1})
    with pytest.raises(Invalid):
        check_subject(kept, {})


@pytest.mark.parametrize(
    "schema",
    [
        [],
        "text",
        None,
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"$schema": 7},
        {"type": "no such type"},
        {"properties": []},
        {"$ref": "https://example.test/schema"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"a": {"$ref": "other.json"}}},
        {"properties": {"a": {"$dynamicRef": "https://example.test/#a"}}},
        {"properties": {"a": {"$id": "https://example.test/b", "$ref": "#"}}},
        {"$defs": {"x": {"enum": [{"$ref": "https://example.test"}]}}},
        nested(20),
        {"enum": list(range(3000))},
        {"description": "x" * 70_000},
        {"pattern": "(a+)+$"},
        {"pattern": "("},
        {"patternProperties": {"^(a|a)*$": {}}},
        {"$ref": "#/type", "type": "object"},
        {"$ref": "#/allOf/x", "allOf": [{}]},
        {"$ref": "#/allOf/7", "allOf": [{}]},
        {"$ref": "#/x-f", "x-f": 7},
        {"$ref": "#/x-f", "x-f": {"type": "no such type"}},
        {"$ref": "#/$defs/nothing"},
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
        {"allOf": [{"$ref": "#" + "/not" * n} for n in range(1, 13)], **negated(12, {"enum": [{}] * 100})},
        {"$schema": DRAFT_07, "properties": {"a": {"$ref": "#/required"}}, "required": ["a"]},
        {"unevaluatedProperties": True, "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"properties": {"b": {"unevaluatedItems": False}}, "$dynamicRef": "#/$defs/a", "$defs": {"a": {}}},
        {"unevaluatedProperties": False, "dependentSchemas": {"a": {}}},
        {"unevaluatedProperties": False, "patternProperties": {"^a": {}}},
        {"properties": {"a": {"$schema": DRAFT_07, "pattern": "a"}}},
        {"properties": {"a" * 513: {}}},
        {"patternProperties": {f"^{n}": {} for n in range(65)}},
    ],
)
def test_schemas_that_are_not_kept(schema: JSON) -> None:
    """Schemas of other drafts, broken, large and deep ones, references elsewhere, costly patterns, and keywords whose
    cost cannot be counted are refused."""
    with pytest.raises(Invalid) as refused:
        check_schema(schema)
    assert refused.value.fields[0].field == "schema"


@pytest.mark.parametrize(
    "pattern",
    [
        "^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", "^[a-z]{3,8}$", "^(?:red|green|blue)$", "\\d{4}-\\d{2}", "^(ab)?c$", "[)(*+]",
        "^\\(\\*\\)$",
    ],
)  # fmt: skip
def test_patterns_that_are_run(pattern: str) -> None:
    """What people write is taken, also where brackets hold what would mean something outside."""
    assert compiled(pattern).expression.pattern == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+", "(a|a)*", "(?:a*)*",
        "(a{1,3}){2,}", "a*a*a*a*a*", "(a)\\1", "(?=a)a", "(?P<n>a)(?P=n)", "x{1,9999}y{1,9}", "^x{0,1000000}$",
        "a" * 600, "a?" * 30, "(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)", "[",
        "(?i)a", "[a-b]" * 33, "[" + "\0-\uffff" * 33 + "]",
    ],
)  # fmt: skip
def test_patterns_that_blow_up(pattern: str) -> None:
    """A repeated group, a reference back, and too many ways are refused."""
    with pytest.raises(ValueError, match="pattern"):
        compiled(pattern)


def test_a_pattern_on_a_long_text() -> None:
    """A pattern with many ways is not tried on a text for which they are too many."""
    kept = check_schema({"properties": {"a": {"pattern": "^a*a*a*$"}}})
    check_subject(kept, {"a": "a" * 50})
    with pytest.raises(Invalid):
        check_subject(kept, {"a": "a" * 1000 + "b"})


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {f"a*a*a*{n}": {} for n in range(20)}},
        {"patternProperties": {f"a*a*a*{n}": {} for n in range(20)}, "additionalProperties": False},
        {"propertyNames": {"pattern": "a*a*a*b"}},
        {"additionalProperties": False, "patternProperties": {"a*a*a*b": {}}},
    ],
    ids=["patternProperties", "with additionalProperties", "propertyNames", "additionalProperties"],
)
def test_patterns_on_long_names(schema: dict[str, JSON]) -> None:
    """Matches of names are charged like those of values."""
    kept = check_schema(schema)
    check_subject(kept, {})
    with pytest.raises(Invalid, match="too long"):
        check_subject(kept, {"a" * 250: 1})


def test_many_cheap_matches() -> None:
    """The sum of all matches of a run is bounded, not only each of them."""
    kept = check_schema({"additionalProperties": {"pattern": "^a*a*a*$"}})
    check_subject(kept, {f"k{n}": "a" * 50 for n in range(10)})
    with pytest.raises(Invalid, match="too long"):
        check_subject(kept, {f"k{n}": "a" * 50 for n in range(100)})


def test_references_that_multiply() -> None:
    """Each level follows two references to the next: the run is stopped, not the service."""
    defs: dict[str, JSON] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    kept = check_schema({"$defs": {**defs, "d30": {}}, "$ref": "#/$defs/d0"})
    with pytest.raises(Invalid):
        check_subject(kept, {"a": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"additionalProperties": {"allOf": [{"type": "string"}] * 400}},
        {"additionalProperties": {"anyOf": [*[{"type": "null"}] * 400, {}]}},
        {"additionalProperties": {"enum": [*range(900), "x"]}},
        {"patternProperties": {f"^{n}a*": {} for n in range(60)}},
    ],
    ids=["allOf", "anyOf", "enum", "patternProperties"],
)
def test_many_subschemas_for_many_values(schema: dict[str, JSON]) -> None:
    """Their product is what counts: the run is stopped where it would take seconds."""
    kept = check_schema(schema)
    with pytest.raises(Invalid, match="too long"):
        check_subject(kept, {f"k{n}": "x" for n in range(400)})


def test_references_that_do_not_end() -> None:
    """A schema that refers to itself for the same value is stopped."""
    with pytest.raises(Invalid):
        check_subject(check_schema({"$ref": "#"}), {"a": 1})


@pytest.mark.parametrize(
    "broken",
    [{"$ref": "#/$defs/no"}, {"$ref": "#/type"}, {"$ref": "#/allOf/x", "allOf": [{}]}, {"type": "no such type"}],
)
def test_a_schema_that_cannot_be_run(broken: dict[str, JSON]) -> None:
    """One that was kept all the same is the caller's to hear of, and no fault of the service."""
    with pytest.raises(Invalid, match="no schema"):
        check_subject({"$schema": DRAFT_2020, "type": "object", **broken}, {"a": 1})


@pytest.mark.parametrize(
    "before",
    [
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
        {"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a"}}},
        {"unevaluatedProperties": False, "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"properties": {"a": {"pattern": "(a+)+$"}}},
        {"properties": {"a": {"$schema": DRAFT_07, "pattern": "a"}}},
    ],
)
def test_a_schema_of_before_todays_rules(before: dict[str, JSON]) -> None:
    """What no run can count is not run, also where the schema was kept when that was allowed."""
    with pytest.raises(Invalid) as refused:
        check_subject({"$schema": DRAFT_2020, "$id": "https://id.example.test/s", **before}, {"a": "aaaa"})
    assert refused.value.fields[0].field == "schema"


@pytest.mark.parametrize("keyword", ["unevaluatedItems", "unevaluatedProperties"])
def test_unevaluated_alone(keyword: str) -> None:
    """Without references these are run."""
    kept = check_schema({"properties": {"a": {"type": "array"}}, keyword: False})
    check_subject(kept, {"a": [1]})


def test_a_reference_into_itself() -> None:
    """A recursive schema is fine where the value ends."""
    kept = check_schema({"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}})
    check_subject(kept, {"n": 1, "next": {"n": 2, "next": {}}})
    with pytest.raises(Invalid):
        check_subject(kept, {"next": {"next": {"n": "x"}}})


@pytest.mark.parametrize(
    "subject",
    [
        {"a": "x" * 40_000},
        {"a": [0] * 600},
        {"a": [[[[[[[[[[[[[[]]]]]]]]]]]]]]},
        {"a": [float("nan")]},
        {"a": float("inf")},
        {"a": (1 << 53) + 1},
        {"a": -(10**400)},
        {"a" * 256: 1},
        {"b": {"a" * 256: 1}},
    ],
    ids=["large", "many", "deep", "NaN", "infinite", "rounded", "huge", "long name", "long name inside"],
)
def test_subjects_that_are_not_looked_at(subject: dict[str, JSON]) -> None:
    """Large, numerous and deep metadata are refused before the schema runs, and numbers that the credential would not
    say as they were sent."""
    with pytest.raises(Invalid) as refused:
        check_subject(check_schema({}), subject)
    assert refused.value.fields[0].field == "metadata"


def test_what_is_wrong_is_told_without_the_value() -> None:
    """Each wrong field by its place, and the keyword that it breaks."""
    kept = check_schema({"properties": {"a": {"type": "integer"}, "b": {"pattern": "^x"}}, "required": ["c"]})
    with pytest.raises(Invalid) as refused:
        check_subject(kept, {"a": "hunter2", "b": "hunter2"})
    told = {(each.field, each.message) for each in refused.value.fields}
    assert told == {
        ("metadata.a", "breaks `type` of the schema"),
        ("metadata.b", "breaks `pattern` of the schema"),
        ("metadata", "breaks `required` of the schema"),
    }
