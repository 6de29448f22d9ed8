"""Each field of each operation is sent with values of wrong types. No answer is a 5xx. Errors name the field and never
repeat the value. Unlike the fuzz test, this test covers every field, and each body has exactly one wrong value.

Each body has its own value. An error may name an object that an earlier body has made.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.api.operations import OPERATIONS, Operation
from tests.api.world import Tenant, World

FIRST_NUMBER = 7_770_077_077
KINDS = 5


def odd_value(kind: int, number: int) -> Any:
    """Return a value of one of KINDS types. number: a number that its text contains."""
    mark = f"zq7marker{number}"
    values: tuple[Any, ...] = ([[mark]], {mark: mark}, None, mark, number)
    return values[kind]


@pytest.fixture(scope="module")
def described(world: World) -> dict[str, Any]:
    """Return the API description of the service."""
    description: dict[str, Any] = world.http.get("/openapi.json").json()
    return description


def bodies(described: dict[str, Any], operation: Operation, right: Any) -> Iterator[tuple[Any, int]]:
    """Yield the valid body with one of its described fields replaced by an odd value, for each field, also in entries
    of arrays. With each body, yield the number that only the odd value of this body contains.
    """
    numbers = count(FIRST_NUMBER)
    kind = described["paths"][operation.path][operation.method.lower()]["requestBody"]["content"]
    for field, inner in _fields(described, kind["application/json"]["schema"]):
        for kind_of_value in range(KINDS):
            number = next(numbers)
            yield {**right, field: odd_value(kind_of_value, number)}, number
            for each, _ in inner:
                number = next(numbers)
                yield {**right, field: [{each: odd_value(kind_of_value, number)}]}, number


def _fields(described: dict[str, Any], schema: dict[str, Any], depth: int = 1) -> list[tuple[str, list[Any]]]:
    """Return the names of an object's members, together with the names of all inner members."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        schema = described["components"]["schemas"][name]
    for each in (schema.get("items"), *schema.get("anyOf", ())):
        if each and (found := _fields(described, each, depth)):
            return found
    members = schema.get("properties", {})
    return [(name, _fields(described, each, depth - 1) if depth else []) for name, each in members.items()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_no_type_is_unexpected(world: World, tenant: Tenant, described: dict[str, Any], operation: Operation) -> None:
    """No answer is a 5xx, no error repeats a sent value, and each 400 names the wrong field."""
    asked = 0
    for body, number in bodies(described, operation, tenant.scoped(**operation.fields(tenant.domain))):
        answer = world.send(operation.method, operation.path, tenant.token, json=body)
        assert answer.status_code < 500, f"{body}: {answer.text}"
        if answer.status_code >= 400:
            assert str(number) not in answer.text, f"{body}: {answer.text}"
        if answer.status_code == 400:
            assert all(each["field"] and each["message"] for each in answer.json()["errors"]), answer.text
            assert answer.json()["errors"], answer.text
        asked += 1
    assert asked
