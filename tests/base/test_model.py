"""The check of unknown fields in bodies with many objects."""

import pytest
from pydantic import TypeAdapter, ValidationError

from sallyport.base.model import MAX_COMPARED, FieldCheck, SentModel, Unknown
from sallyport.base.validation import MAX_COUNTED


class Entry(SentModel):
    """An entry of a list."""

    deviceName: str = ""  # noqa: N815


def messages(entries: list[dict[str, str]], unknown: Unknown) -> dict[int, str]:
    """Return the error message of each refused entry, by its place in the body."""
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(list[Entry]).validate_python(entries, context=FieldCheck(unknown))
    return {int(each["loc"][0]): each["msg"] for each in raised.value.errors()}


@pytest.mark.parametrize("unknown", [Unknown.REFUSED, Unknown.NEAR_MISSES_REFUSED])
def test_a_name_that_many_objects_have_is_refused_in_each(unknown: Unknown) -> None:
    """The error of each object names the known field."""
    found = messages([{"devicename": ""}] * MAX_COUNTED, unknown)
    assert len(found) == MAX_COUNTED
    assert set(found.values()) == {"unknown field: did you mean deviceName?"}


def test_a_body_has_a_limited_number_of_comparisons() -> None:
    """Thousands of different names in one body would block the event loop. The names after the first ones are refused
    without a comparison."""
    found = messages([{f"deviceNam{number}": ""} for number in range(2 * MAX_COMPARED)], Unknown.REFUSED)
    compared = {number for number, message in found.items() if "did you mean" in message}
    assert len(found) == 2 * MAX_COMPARED
    assert compared == set(range(MAX_COMPARED))
