"""The bodies of the operations of policies: what a request needs, what it may leave out, and what an error names."""

from inspect import getmembers
from types import ModuleType

import pytest
from pydantic import BaseModel, ValidationError

from sallyport.areas.policy.bypass import bodies as of_bypass
from sallyport.areas.policy.lockouts import bodies as of_lockouts
from sallyport.areas.policy.roles import bodies as of_roles
from sallyport.areas.policy.rules import bodies as of_rules
from sallyport.base.validation import refusal

MAC = "020000000001"
IN_DOMAIN = {"orgId": 1, "tenantId": 1, "domainId": 1}
PAGE = {"pageId": 1, "pageSize": 10}
NEW: dict[str, object] = {"name": "r", "action": "block"}


def models(bodies: ModuleType) -> list[type[BaseModel]]:
    """Return the models that a module defines."""
    found = [each for _, each in getmembers(bodies) if isinstance(each, type) and issubclass(each, BaseModel)]
    return [each for each in found if each.__module__ == bodies.__name__]


def test_each_field_is_described() -> None:
    """The description of the API explains each field of requests and answers."""
    for model in (model for bodies in (of_bypass, of_lockouts, of_roles, of_rules) for model in models(bodies)):
        fields = model.model_json_schema().get("properties", {})
        assert [name for name, field in fields.items() if not is_described(field)] == [], model


def is_described(field: dict[str, object]) -> bool:
    """Return whether the schema of a field, or of its values, has a description."""
    values = field.get("anyOf", ())
    return any("description" in each for each in [field, *values])  # type: ignore[misc]


@pytest.mark.parametrize(
    ("bodies", "model", "fields"),
    [
        (of_bypass, "AddBypassStation", {"station": MAC}),
        (of_bypass, "ImportBypassStations", {"stations": [{"station": MAC}]}),
        (of_bypass, "DeleteBypassStation", {"station": MAC}),
        (of_bypass, "ListBypassStations", {}),
        (of_bypass, "ListUnknownStations", {}),
        (of_lockouts, "ListLockouts", {}),
        (of_lockouts, "Unlock", {"userName": "ann"}),
        (of_lockouts, "Unlock", {"station": MAC}),
        (of_roles, "SetRole", {"role": "staff"}),
        (of_roles, "RemoveRole", {"role": "staff"}),
        (of_roles, "ShowRole", {"role": "staff"}),
        (of_roles, "ListRoles", {}),
        (of_rules, "AddLoginRule", NEW),
        (of_rules, "UpdateLoginRule", {"ruleId": 1}),
        (of_rules, "DeleteLoginRule", {"ruleId": 1}),
        (of_rules, "ListLoginRules", {}),
    ],
)
def test_a_request_may_leave_out_all_other_fields(bodies: ModuleType, model: str, fields: dict[str, object]) -> None:
    """The others are empty, and a list begins with its first page."""
    body = getattr(bodies, model).model_validate({**IN_DOMAIN, **fields})
    others = body.model_dump(exclude={*IN_DOMAIN, *fields})
    filled = {name: value for name, value in others.items() if value}
    assert filled == {name: PAGE[name] for name in PAGE.keys() & others.keys()}


@pytest.mark.parametrize("bodies", [of_bypass])
def test_a_value_that_an_imported_station_does_not_have_is_none(bodies: ModuleType) -> None:
    """An empty value would clear that of a listed station."""
    body = bodies.ImportBypassStations.model_validate({**IN_DOMAIN, "stations": [{"station": MAC}]})
    given = body.stations[0].change_of(MAC)
    assert (given.name, {given.vlan, given.until, given.role, given.psk, given.tags}) == ("", {None})


@pytest.mark.parametrize("bodies", [of_rules])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"days": "Monday"}, (("mon",), "00:00", "24:00", "UTC")),
        ({"from": "8:00", "timezone": "Europe/Berlin"}, ((), "08:00", "24:00", "Europe/Berlin")),
        ({"start": "23:30", "until": "24:00"}, ((), "23:30", "24:00", "UTC")),
        ({"until": "0:30", "days": ["sun", "thurs"]}, (("sun", "thu"), "00:00", "00:30", "UTC")),
    ],
)
def test_a_time_begins_and_ends_at_midnight(
    bodies: ModuleType, given: dict[str, object], expected: tuple[object, ...]
) -> None:
    """A rule may have only days, or only one end of a time. An empty time covers the whole week."""
    window = bodies.GivenWindow.model_validate(given).window()
    assert (window.days, window.start, window.until, window.timezone) == expected
    assert bodies.GivenWindow().window() is None


@pytest.mark.parametrize("bodies", [of_rules])
def test_an_empty_value_clears_the_condition(bodies: ModuleType) -> None:
    """A form sends an empty text, a program an empty list or null. Only null keeps the value."""
    for empty in ("", [], {}):
        assert bodies.RuleFields(time=empty).given() == {"time": None}
    for empty in ("", []):
        assert bodies.RuleFields(users=empty).conditions() == {"users": ()}
    assert bodies.RuleFields(time=None, users=None).given() == {}


@pytest.mark.parametrize(
    ("bodies", "model", "fields", "wrong"),
    [
        (of_bypass, "AddBypassStation", {"station": MAC, "psk": "12345678", "generatePsk": True}, "psk generatePsk"),
        (of_lockouts, "Unlock", {}, "userName station"),
        (of_lockouts, "Unlock", {"userName": "ann", "station": MAC}, "userName station"),
        (of_roles, "SetRole", {"role": "x", "product": "Ruckus", "tag": "a=b"}, "product tag"),
        (of_roles, "SetRole", {"role": "x", "product": "own box", "template": True}, "product"),
        (of_roles, "SetRole", {"role": "x", "tag": "b"}, "tag"),
        (of_rules, "AddLoginRule", {**NEW, "time": {"from": "8:00", "until": "08:00"}}, "time.from time.until"),
        (of_rules, "AddLoginRule", {**NEW, "time": {"from": "24:01"}}, "time.from"),
        (of_rules, "AddLoginRule", {**NEW, "users": ["a", " "]}, "users.1"),
        (of_rules, "AddLoginRule", {**NEW, "replyAttributes": [{"name": "Class"}]}, "replyAttributes.0.value"),
    ],
)
def test_an_error_names_the_fields(bodies: ModuleType, model: str, fields: dict[str, object], wrong: str) -> None:
    """A form shows the message beside the fields."""
    with pytest.raises(ValidationError) as caught:
        getattr(bodies, model).model_validate({**IN_DOMAIN, **fields})
    assert [each.field for each in refusal(caught.value).fields] == wrong.split()


@pytest.mark.parametrize("bodies", [of_rules])
@pytest.mark.parametrize("model", ["ReplyAttribute", "GivenWindow", "RuleFields"])
def test_the_text_of_an_error_has_no_value(bodies: ModuleType, model: str) -> None:
    """It may get into a log."""
    with pytest.raises(ValidationError) as caught:
        getattr(bodies, model)(name=["hunter2"], value=["hunter2"], days=["hunter2"], action="hunter2")
    assert "hunter2" not in str(caught.value)
