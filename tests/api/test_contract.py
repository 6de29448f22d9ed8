"""/openapi.json keeps what programs rely on: it is compared with the contract of the last release."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.contract import Schema, breaks, facts, stored
from tests.api.world import World

Change = Callable[[Schema], object]


@pytest.fixture(scope="module")
def document(world: World) -> Any:
    """Return the description of the service."""
    return world.http.get("/openapi.json").json()


def test_no_change_breaks_a_program(document: Schema) -> None:
    """If a change is meant to break programs, CHANGELOG.md says so, and `python -m tests.api.contract` writes the
    contract anew.
    """
    assert breaks(stored(), facts(document)) == []


def _of(name: str) -> Callable[[Schema], Schema]:
    def model(document: Schema) -> Schema:
        found: Schema = document["components"]["schemas"][name]
        return found

    return model


def _operation(document: Schema) -> Schema:
    found: Schema = document["paths"]["/ad/AddDomain"]["post"]
    return found


DOMAIN, MODE, DEVICE, ERROR = _of("AddDomain"), _of("Mode"), _of("DeviceEntry"), _of("RadiusProblem")
BREAKING: dict[str, tuple[Change, str]] = {
    "an operation is removed": (lambda it: it["paths"].pop("/ad/AddDomain"), "gone: takes POST /ad/AddDomain"),
    "a field of a request is removed": (
        lambda it: DOMAIN(it)["properties"].pop("realms"),
        "gone: takes AddDomain.realms",
    ),
    "a field becomes required": (
        lambda it: DOMAIN(it)["required"].append("realms"),
        "new: takes AddDomain.realms required",
    ),
    "a new field is required": (
        lambda it: [DOMAIN(it)["properties"].update(x={"type": "string"}), DOMAIN(it)["required"].append("x")],
        "new: takes AddDomain.x required",
    ),
    "a limit becomes narrower": (
        lambda it: DOMAIN(it)["properties"]["domainName"].update(maxLength=9),
        "narrower: takes AddDomain.domainName maxLength=255",
    ),
    "a limit is added": (
        lambda it: DOMAIN(it)["properties"]["domainName"].update(maximum=9),
        "new: takes AddDomain.domainName maximum=9",
    ),
    "a value is removed": (lambda it: MODE(it)["enum"].remove("monitor"), "gone: takes Mode: 'monitor'"),
    "a type changes": (
        lambda it: DOMAIN(it)["properties"]["domainName"].update(type="integer"),
        "gone: takes AddDomain.domainName: string",
    ),
    "a field of an answer is removed": (
        lambda it: DEVICE(it)["properties"].pop("device_name"),
        "gone: gives DeviceEntry.device_name",
    ),
    "a field of an answer may be absent": (
        lambda it: DEVICE(it)["required"].remove("device_name"),
        "gone: gives DeviceEntry.device_name required",
    ),
    "a field of an error is removed": (
        lambda it: ERROR(it)["properties"].pop("error"),
        "gone: gives RadiusProblem.error: string",
    ),
    "an error has another body": (
        lambda it: _operation(it)["responses"]["429"]["content"]["application/json"].update(schema={"type": "string"}),
        "gone: gives POST /ad/AddDomain 429 application/json: RadiusProblem",
    ),
    "a status is removed": (
        lambda it: _operation(it)["responses"].pop("429"),
        "gone: gives POST /ad/AddDomain 429",
    ),
    "a header is removed": (
        lambda it: _operation(it)["responses"]["429"]["headers"].pop("Retry-After"),
        "gone: gives POST /ad/AddDomain 429 header Retry-After",
    ),
    "a header of each answer is removed": (
        lambda it: _operation(it)["responses"]["200"]["headers"].pop("X-Request-Id"),
        "gone: gives POST /ad/AddDomain header X-Request-Id",
    ),
    "a token is sent in another header": (
        lambda it: it["components"]["securitySchemes"]["X-Authorization"].update(name="Token"),
        "gone: takes scheme X-Authorization: header X-Authorization apiKey",
    ),
    "an operation needs another authentication": (
        lambda it: _operation(it).update(security=[{"Bearer": []}]),
        "gone: takes POST /ad/AddDomain with X-Authorization",
    ),
}


@pytest.mark.parametrize("change", BREAKING)
def test_a_breaking_change_is_found(document: Schema, change: str) -> None:
    """Each kind of change that breaks a program is named."""
    make, finding = BREAKING[change]
    changed = copy.deepcopy(document)
    make(changed)
    assert any(each.startswith(finding) for each in breaks(facts(document), facts(changed)))


def test_additions_break_nothing(document: Schema) -> None:
    """A new operation, an optional field, a further value, status or header, a wider limit, and another way to
    authenticate are no breaking changes.
    """
    changed = copy.deepcopy(document)
    changed["paths"]["/ad/New"] = json.loads(json.dumps(changed["paths"]["/ad/AddDomain"]))
    DOMAIN(changed)["properties"]["x"] = {"type": "string", "maxLength": 9}
    DOMAIN(changed)["properties"]["domainName"]["maxLength"] = 300
    MODE(changed)["enum"].append("observe")
    DEVICE(changed)["properties"]["x"] = {"type": "string"}
    DEVICE(changed)["required"].append("x")
    _operation(changed)["responses"]["409"] = {**_operation(changed)["responses"]["400"]}
    _operation(changed)["responses"]["400"]["headers"]["X-New"] = {}
    _operation(changed)["security"].append({"Bearer": []})
    changed["components"]["securitySchemes"]["Basic"] = {"type": "http", "scheme": "basic"}
    assert breaks(facts(document), facts(changed)) == []
