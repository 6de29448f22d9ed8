"""The OpenAPI document, as generators of clients read it."""

import re
from collections import Counter
from typing import Any

import pytest

from docs import reference


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """Return the document of all operations."""
    return reference.api()


def titles(schema: object, place: str) -> list[tuple[str, str]]:
    """Return the titles within a schema, each with its place. Values of examples and defaults have none."""
    if isinstance(schema, list):
        return [found for each in schema for found in titles(each, place)]
    if not isinstance(schema, dict):
        return []
    own = [(place, schema["title"])] if isinstance(schema.get("title"), str) else []
    for keyword, inner in schema.items():
        if keyword not in ("default", "enum", "example", "examples", "const"):
            within = list(inner.values()) if keyword == "properties" else inner
            own += titles(within, f"{place}/{keyword}")
    return own


def test_each_schema_has_its_own_title(described: dict[str, Any]) -> None:
    """A title is the name of its schema, and no other part of the document has a title. Generators take it as the name
    of a class, and lose the operations of a second class with this name.
    """
    schemas = described["components"]["schemas"]
    found = [each for name, schema in schemas.items() for each in titles(schema, name)]
    assert found == [(name, name) for name in schemas]
    assert titles(described["paths"], "") == []


def test_no_two_names_become_one_in_a_client(described: dict[str, Any]) -> None:
    """The names of schemas and operations are identifiers that differ in more than case and underscores."""
    operations = [each["operationId"] for methods in described["paths"].values() for each in methods.values()]
    for names in (operations, list(described["components"]["schemas"])):
        assert [name for name in names if not re.fullmatch("[A-Za-z][A-Za-z0-9]*", name)] == []
        counts = Counter(name.casefold() for name in names)
        assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("post", "/network_device/ListDevices", "ListDevices"),
        ("delete", "/api/v1/instances/deleteInstance", "deleteInstance"),
        ("post", "/api/v1/machine/add-machine", "addMachine"),
        ("post", "/api/v1/instances/list", "instancesList"),
        ("post", "/api/v1/instances/addInstance", "addInstance"),
        ("post", "/api/v1/instances/add-instance", "instancesAddInstance"),
        ("post", "/api/v1/instances/updatePasswordPolicy", "updatePasswordPolicy"),
        ("put", "/api/v1/instances/updatePasswordPolicy", "updatePasswordPolicyPut"),
        ("post", "/api/v1/instanceGroup/assignUsersToEndpointGroup", "assignUsersToEndpointGroup"),
    ],
)
def test_an_operation_id_is_the_end_of_the_path(described: dict[str, Any], method: str, path: str, name: str) -> None:
    """The operationId is the last part of the path, and longer only where another operation has this part."""
    assert described["paths"][path][method]["operationId"] == name
