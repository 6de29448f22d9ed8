"""Checks of credential schemas and subjects: accepted keywords, error messages and limits on run time."""

import pytest

from sallyport.areas.did.credentials.check import check_schema, check_subject
from sallyport.areas.did.credentials.keywords import compiled
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def nested(levels: int) -> dict[str, JSON]:
    """Return a schema that is nested this many levels deep."""
    found: dict[str, JSON] = {"type": "string"}
    for _ in range(levels):
        found = {"properties": {"a": found}}
    return found


def negated(levels: int, inner: dict[str, JSON]) -> dict[str, JSON]:
    """Return a schema that is inside this many levels of `not`."""
    for _ in range(levels):
        inner = {"not": inner}
    return inner


@pytest.mark.parametrize("dialect", [DRAFT_07, DRAFT_07.rstrip("#"), DRAFT_2020, None])
def test_two_drafts_are_accepted(dialect: str | None) -> None:
    """JSON Schema drafts 07 and 2020-12 are accepted. A schema without $schema is read as 2020-12."""
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
        {"pattern": "(a+)\\1$"},
        {"pattern": "("},
        {"patternProperties": {"^(?=a)a*$": {}}},
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
def test_an_unsupported_schema_is_refused(schema: JSON) -> None:
    """A schema is refused if it uses another draft, is malformed, too large or too deep, or has an external reference,
    a costly pattern, or a keyword of unknown cost.
    """
    with pytest.raises(Invalid) as refused:
        check_schema(schema)
    assert refused.value.fields[0].field == "schema"


@pytest.mark.parametrize(
    ("pattern", "met", "unmet"),
    [
        ("^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", "anna@corp.example", "anna"),
        ("^[a-z]{3,8}$", "anna", "anna\n"),
        ("^(?:red|green|blue)$", "green", "greens"),
        ("\\d{4}-\\d{2}", "since 2026-11", "2026"),
        ("^(ab)?c$", "abc", "abab"),
        ("[)(*+]", "*", "a"),
        ("^\\(\\*\\)$", "(*)", "*"),
        ("^[\\u4e00-\\u9fff]+$", "\u4e2d\u6587", "zh"),
        ("^\\\\u00e9$", "\\u00e9", "\u00e9"),
        ("^\\p{Lu}\\p{L}*$", "\u00c9mile", "\u00e9mile"),
        ("(?i)^a$", "A", "b"),
        ("^(?<name>a)$", "a", "b"),
    ],
)  # fmt: skip
def test_a_pattern_matches(pattern: str, met: str, unmet: str) -> None:
    """Patterns of ECMA-262 match by its rules, also with characters in brackets that have a meaning outside of
    brackets, and with its escapes of characters.
    """
    kept = check_schema({"pattern": pattern})
    check_subject(kept, met)
    with pytest.raises(Invalid, match="does not meet the schema"):
        check_subject(kept, unmet)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a)\\1", "(?=a)a", "(?<!a)b", "(?P<n>a)(?P=n)", "x{1,9999}y{1,9}", "^x{0,1000000}$", "((a{1000}){1000}){1000}",
        "a" * 600, "[", "(?:\\p{L}{20}){9}", "[\\p{L}-z]{900}",
    ],
)  # fmt: skip
def test_a_pattern_that_re2_does_not_have_is_refused(pattern: str) -> None:
    """A pattern is refused if it has a back-reference or looks around, or if its compiled form is too large."""
    with pytest.raises(ValueError, match="a pattern "):
        compiled(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$", "^(a|a)*$", "^(?:a*)*$", "^(a{1,3}){2,}$", "^a*a*a*a*a*$", "^" + "a?" * 30 + "a{30}$", "^(a|aa)+$",
        "^" + "(a|b)" * 13 + "$", "^" + "[a-b]" * 33 + "$", "^[" + "\0-\uffff" * 33 + "]$",
    ],
)  # fmt: skip
def test_a_pattern_takes_linear_time(pattern: str) -> None:
    """A pattern for which backtracking takes an exponential time is matched at once."""
    kept = check_schema({"pattern": pattern})
    with pytest.raises(Invalid, match="does not meet the schema"):
        check_subject(kept, "a" * 30_000 + "\U0001f4a9")


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {f"^a*a*a*{n}$": False for n in range(20)}},
        {"patternProperties": {f"^a*a*a*{n + 10}$": {} for n in range(20)}, "additionalProperties": False},
        {"propertyNames": {"pattern": "a*a*a*b"}},
        {"additionalProperties": False, "patternProperties": {"a*a*a*b": {}}},
    ],
    ids=["patternProperties", "with additionalProperties", "propertyNames", "additionalProperties"],
)
def test_patterns_for_the_names_of_properties_take_linear_time(schema: dict[str, JSON]) -> None:
    """Patterns of several repetitions are matched with long names of properties at once."""
    kept = check_schema(schema)
    check_subject(kept, {})
    with pytest.raises(Invalid, match="does not meet the schema"):
        check_subject(kept, {"a" * 250 + "7": 1})


COSTLY = "^((a{1,30}b?){1,20}c?)*$"
"""A pattern whose compiled form has more than 1,200 instructions."""


@pytest.mark.parametrize(
    ("schema", "subject"),
    [
        ({"pattern": COSTLY}, "a" * 30_000),
        ({"pattern": COSTLY}, "\U0001f4a9" * 7_500),
        ({"additionalProperties": {"pattern": COSTLY}}, {f"k{n}": "a" * 300 for n in range(90)}),
        ({"allOf": [{"pattern": COSTLY}] * 60}, "a" * 300),
        ({"patternProperties": {f"{COSTLY}{n}": {} for n in range(60)}}, {"a" * 250: 1}),
        ({"propertyNames": {"pattern": COSTLY}}, {"a" * (190 + n): 1 for n in range(60)}),
        ({"additionalProperties": False, "patternProperties": {f"{COSTLY}{n}": {} for n in range(60)}}, {"a" * 250: 1}),
    ],
    ids=["text", "octets", "values", "patterns", "patternProperties", "propertyNames", "additionalProperties"],
)
def test_the_total_cost_of_all_matches_is_limited(schema: dict[str, JSON], subject: JSON) -> None:
    """The size of the patterns times the length of their texts is limited, for values and for names."""
    kept = check_schema(schema)
    with pytest.raises(Invalid, match="too long"):
        check_subject(kept, subject)


def test_an_exponential_number_of_references_is_stopped() -> None:
    """If each level of a schema refers to the next one twice, the check stops with a refusal."""
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
def test_many_subschemas_for_many_values_are_stopped(schema: dict[str, JSON]) -> None:
    """The product of the number of subschemas and the number of values is limited, so that a check cannot take
    seconds.
    """
    kept = check_schema(schema)
    with pytest.raises(Invalid, match="too long"):
        check_subject(kept, {f"k{n}": "x" for n in range(400)})


def test_an_endless_reference_is_stopped() -> None:
    """A schema that refers to itself for the same value is refused."""
    with pytest.raises(Invalid):
        check_subject(check_schema({"$ref": "#"}), {"a": 1})


@pytest.mark.parametrize(
    "broken",
    [{"$ref": "#/$defs/no"}, {"$ref": "#/type"}, {"$ref": "#/allOf/x", "allOf": [{}]}, {"type": "no such type"}],
)
def test_a_broken_stored_schema_raises_invalid(broken: dict[str, JSON]) -> None:
    """A stored schema that cannot be evaluated raises Invalid and is not an internal error."""
    with pytest.raises(Invalid, match="does not lead to a schema"):
        check_subject({"$schema": DRAFT_2020, "type": "object", **broken}, {"a": 1})


@pytest.mark.parametrize(
    "before",
    [
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
        {"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a"}}},
        {"unevaluatedProperties": False, "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"properties": {"a": {"pattern": "(a+)\\1$"}}},
        {"properties": {"a": {"$schema": DRAFT_07, "pattern": "a"}}},
    ],
)
def test_a_stored_schema_is_checked_again(before: dict[str, JSON]) -> None:
    """A stored schema is not evaluated if it has constructs that are refused today."""
    with pytest.raises(Invalid) as refused:
        check_subject({"$schema": DRAFT_2020, "$id": "https://id.example.test/s", **before}, {"a": "aaaa"})
    assert refused.value.fields[0].field == "schema"


@pytest.mark.parametrize("keyword", ["unevaluatedItems", "unevaluatedProperties"])
def test_unevaluated_keywords_without_references_are_accepted(keyword: str) -> None:
    kept = check_schema({"properties": {"a": {"type": "array"}}, keyword: False})
    check_subject(kept, {"a": [1]})


def test_a_recursive_schema_is_accepted() -> None:
    """A recursive schema is accepted, because each value that it checks is finite."""
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
        {"a": 1 << 53},
        {"a": (1 << 53) + 1},
        {"a": -(10**400)},
        {"a" * 256: 1},
        {"b": {"a" * 256: 1}},
    ],
    ids=["large", "many", "deep", "NaN", "infinite", "inexact", "rounded", "huge", "long name", "long name inside"],
)
def test_an_unsuitable_subject_is_refused_before_the_check(subject: dict[str, JSON]) -> None:
    """A subject is refused before the schema is evaluated if its metadata is too large or too deep, has too many
    values, or has a number that a credential cannot represent exactly.
    """
    with pytest.raises(Invalid) as refused:
        check_subject(check_schema({}), subject)
    assert refused.value.fields[0].field == "metadata"


def test_errors_name_the_field_without_its_value() -> None:
    """Each error has the path of the field and the keyword that the field violates. It does not have the value."""
    kept = check_schema({"properties": {"a": {"type": "integer"}, "b": {"pattern": "^x"}}, "required": ["c"]})
    with pytest.raises(Invalid) as refused:
        check_subject(kept, {"a": "hunter2", "b": "hunter2"})
    errors = {(each.field, each.message) for each in refused.value.fields}
    assert errors == {
        ("metadata.a", "must meet `type` of the schema"),
        ("metadata.b", "must meet `pattern` of the schema"),
        ("metadata", "must meet `required` of the schema"),
    }
