"""Tests of the service's schema check with the JSON Schema Test Suite.

A stored schema must give the verdict of the suite for every value, and a schema is refused only for an intended reason.
`tests/peers/install` fetches the suite, and the source of the package that evaluates schemas here.
"""

import json
import os
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

from sallyport.areas.did.credentials.check import check_schema, check_subject
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON

_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sallyport"
SUITE = _CACHES / f"json-schema-{version('jsonschema')}"
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not SUITE.is_dir(), reason="the JSON Schema Test Suite is not installed"),
]

NO_OBJECT = "must be an object"
ELSEWHERE = "a reference must be `#` or a JSON pointer `#/...`"
OWN_ID = "$id is allowed only at the top level of the schema"
UNEVALUATED = (
    "a schema with unevaluatedItems or unevaluatedProperties must not have references, dependentSchemas or "
    "patternProperties"
)
ROUNDED = "must have only numbers that a double can hold without rounding"
"""2^53, which other parsers may have rounded (RFC 7493 section 2.2)."""
OTHER_DRAFT = "$schema must name the draft draft-07 or 2020-12"


def standing(schema: JSON, value: JSON) -> str:
    """Return the result of the check: stored and valid, stored and invalid, or the reason of the refusal."""
    try:
        kept = check_schema(schema)
    except Invalid as refused:
        return refused.fields[0].message
    try:
        check_subject(kept, value)
    except Invalid as refused:
        assert str(refused) == "metadata does not meet the schema"
        return "invalid"
    return "valid"


@pytest.mark.parametrize(
    ("folder", "draft", "reasons", "least"),
    [
        ("draft7", "http://json-schema.org/draft-07/schema#", {NO_OBJECT, ELSEWHERE, OWN_ID, ROUNDED}, 800),
        (
            "draft2020-12",
            "https://json-schema.org/draft/2020-12/schema",
            {NO_OBJECT, ELSEWHERE, OWN_ID, ROUNDED, UNEVALUATED, OTHER_DRAFT},
            1000,
        ),
    ],
)
def test_the_suite(folder: str, draft: str, reasons: set[str], least: int) -> None:
    """Each case gives the verdict of the suite."""
    others: list[str] = []
    found: Counter[str] = Counter()
    for file in sorted((SUITE / folder).glob("*.json")):
        for group in json.loads(file.read_text(encoding="utf-8")):
            schema = group["schema"]
            schema = {"$schema": draft, **schema} if isinstance(schema, dict) else schema
            for case in group["tests"]:
                said = standing(schema, case["data"])
                found[said] += 1
                if said in {"valid", "invalid"} and (said == "valid") is not case["valid"]:
                    others.append(f"{file.stem}: {group['description']}: {case['description']}: {said}")
    assert others == []
    assert found.keys() - {"valid", "invalid"} == reasons
    assert found["valid"] + found["invalid"] >= least
