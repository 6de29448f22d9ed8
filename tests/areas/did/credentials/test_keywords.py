"""Each keyword of both drafts, evaluated by the checker. The checker evaluates some keywords itself and counts the cost
of the others.
"""

import pytest

from sallyport.areas.did.credentials.check import check_schema, check_subject
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

BOTH: list[tuple[dict[str, JSON], JSON, JSON]] = [
    ({"type": "integer"}, 1.0, 1.5),
    ({"type": "integer"}, 1, True),
    ({"type": "number"}, 1.5, "1.5"),
    ({"type": "boolean"}, False, 0),
    ({"type": "null"}, None, ""),
    ({"type": ["string", "array"]}, [], {}),
    ({"enum": [1, "a", None]}, None, "b"),
    ({"enum": [[False]]}, [False], [0]),
    ({"const": {"a": 1}}, {"a": 1.0}, {"a": True}),
    ({"multipleOf": 1.5}, 4.5, 4),
    ({"maximum": 3}, 3, 3.1),
    ({"exclusiveMaximum": 3}, 2.9, 3),
    ({"minimum": 1.1}, 1.1, 1),
    ({"exclusiveMinimum": 1}, 1.1, 1),
    ({"maxLength": 2}, "\U0001f4a9\U0001f4a9", "abc"),
    ({"minLength": 2}, "ab", "\U0001f4a9"),
    ({"pattern": "^a+$"}, "aaa", "aab"),
    ({"pattern": "a+"}, "xxaayy", "xyz"),
    ({"pattern": "^a+$"}, 7, "b"),
    ({"items": {"type": "integer"}}, [1, 2], [1, "2"]),
    ({"maxItems": 2}, [1, 2], [1, 2, 3]),
    ({"minItems": 1}, [1], []),
    ({"uniqueItems": True}, [1, "1", True], [1, 2, 1]),
    ({"uniqueItems": True}, [[1], [True]], [{"a": 1}, {"a": 1.0}]),
    ({"contains": {"minimum": 5}}, [3, 5], [3, 4]),
    ({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 2}),
    ({"minProperties": 1}, {"a": 1}, {}),
    ({"required": ["a"]}, {"a": None}, {"b": 1}),
    ({"properties": {"a": {"type": "string"}}}, {"a": "x", "b": 1}, {"a": 1}),
    ({"patternProperties": {"^f": {"type": "integer"}}}, {"foo": 1, "bar": "x"}, {"foo": "x"}),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
    ({"additionalProperties": {"type": "boolean"}}, {"a": True}, {"a": 1}),
    ({"propertyNames": {"maxLength": 3}}, {"abc": 1}, {"abcd": 1}),
    ({"if": {"exclusiveMaximum": 0}, "then": {"minimum": -10}, "else": {"multipleOf": 2}}, -5, -11),
    ({"if": {"exclusiveMaximum": 0}, "then": {"minimum": -10}, "else": {"multipleOf": 2}}, 4, 3),
    ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 2, 4),
    ({"anyOf": [{"type": "string"}, {"minimum": 2}]}, 2, 1.5),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 2.5, 3),
    ({"not": {"type": "integer"}}, "x", 1),
    ({"properties": {"next": {"$ref": "#"}}, "additionalProperties": False}, {"next": {}}, {"next": {"a": 1}}),
    ({"properties": {"a": {"$ref": "#/properties/b~1c"}, "b/c": {"type": "string"}}}, {"a": "x"}, {"a": 1}),
    ({"additionalProperties": False, "properties": {"$ref": {"type": "string"}}}, {"$ref": "x"}, {"$ref": 1}),
    ({"properties": {"a": True, "b": False}}, {"a": 1}, {"b": 1}),
]
ONLY_07: list[tuple[dict[str, JSON], JSON, JSON]] = [
    ({"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}, [1, "a"], [1, 2]),
    ({"items": [{}], "additionalItems": False}, [1], [1, 2]),
    ({"dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
    ({"dependencies": {"a": {"required": ["b"]}}}, {"b": 1}, {"a": 1}),
    ({"$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": {"type": "integer"}}}, 7, "x"),
    ({"definitions": {"a": {"type": "null"}}, "properties": {"a": {"$ref": "#/definitions/a"}}}, {"a": None}, {"a": 1}),
]
ONLY_2020: list[tuple[dict[str, JSON], JSON, JSON]] = [
    ({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, [1, "a"], [1, 2]),
    ({"prefixItems": [{"type": "integer"}], "items": False}, [1], [1, 2]),
    ({"contains": {"const": 1}, "maxContains": 1}, [1, 2], [1, 1]),
    ({"contains": {"const": 1}, "minContains": 2}, [1, 1], [1, 2]),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"b": 1}, {"a": 1}),
    ({"$ref": "#/$defs/a", "maximum": 1, "$defs": {"a": {"type": "integer"}}}, 1, 7),
    ({"$dynamicRef": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, 1, "x"),
    ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
    ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": {"type": "string"}}, {"a": 1}, {"b": 1}),
    ({"prefixItems": [{}], "unevaluatedItems": False}, [1], [1, 2]),
]
CASES = [
    *(pytest.param(DRAFT_07, *case, id=f"07-{next(iter(case[0]))}") for case in (*BOTH, *ONLY_07)),
    *(pytest.param(DRAFT_2020, *case, id=f"2020-{next(iter(case[0]))}") for case in (*BOTH, *ONLY_2020)),
]


@pytest.mark.parametrize(("draft", "schema", "valid", "invalid"), CASES)
def test_a_keyword_is_evaluated(draft: str, schema: dict[str, JSON], valid: JSON, invalid: JSON) -> None:
    """For each keyword, one value is accepted and another one is refused."""
    kept = check_schema({"$schema": draft, **schema})
    check_subject(kept, valid)
    with pytest.raises(Invalid, match="does not meet the schema"):
        check_subject(kept, invalid)


@pytest.mark.parametrize("draft", [DRAFT_07, DRAFT_2020])
def test_annotations_refuse_no_value(draft: str) -> None:
    """Annotations, formats and unknown keywords refuse no value."""
    telling: dict[str, JSON] = {
        "title": "t", "description": "d", "default": 1, "examples": [1], "$comment": "c", "format": "email",
        "contentEncoding": "base64", "contentMediaType": "application/json", "readOnly": True,
        "x-more": {"type": "null"},
    }  # fmt: skip
    check_subject(check_schema({"$schema": draft, **telling}), "no e-mail address")
