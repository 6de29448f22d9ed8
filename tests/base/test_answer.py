"""Answers, models and columns that derive from the class of a row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
from pydantic import TypeAdapter

from sallyport.base.answer import Wire, answer, answers, field_names, wire_fields, wire_names
from sallyport.base.clock import iso
from sallyport.base.model import Model, answer_of
from sallyport.console.columns import row_columns


@dataclass(slots=True)
class Lamp:
    """A lamp. It has a value of each sort."""

    lit_at: Annotated[int | None, Wire("Time of the last light.", "litAt", iso, empty=True)]
    secret: str
    room: Annotated[str, Wire("Room.", after="isOld", title="Place")]
    house: ClassVar[Annotated[str, Wire("House.")]]
    parts: Annotated[int, Wire("Number of parts.", detail=True)]

    @Wire("Whether the lamp is old.", "isOld", after="litAt")
    def is_old(self, now: int) -> bool:
        """Return whether the lamp is older than a second."""
        return now - (self.lit_at or 0) > 1_000_000

    @property
    @Wire("Name.", after="room")
    def name(self) -> str:
        """The name of the lamp."""
        return f"lamp in {self.room}"


@answer_of(Lamp)
class LampEntry(Model):
    """A lamp in a list."""


LAMP = Lamp(5, "pin", "hall", 3)


def test_an_answer_has_the_marked_values_in_their_order() -> None:
    """Fields without a mark are left out. A value that is the same for all rows comes from the caller."""
    found = answer(LAMP, now=3_000_000, house="A")
    time = "1970-01-01T00:00:00.000005Z"
    assert list(found.items()) == [
        ("litAt", time), ("isOld", True), ("room", "hall"), ("name", "lamp in hall"), ("house", "A")
    ]  # fmt: skip


def test_a_model_can_have_chosen_values() -> None:
    """The values have the given order."""
    assert list(answer_of(Lamp, "name", "litAt")(Model).model_fields) == ["name", "litAt"]


def test_a_name_in_answers_leads_to_its_field() -> None:
    """So a body can name the fields of a row."""
    names = field_names(Lamp)
    assert (names["litAt"], names["room"]) == ("lit_at", "room")


def test_null_becomes_an_empty_text() -> None:
    """This applies to values with the mark `empty`."""
    assert answer(Lamp(None, "", "", 0), now=0, house="")["litAt"] == ""


def test_the_answer_about_one_row_has_more_values() -> None:
    """They follow those of a list."""
    assert list(answer(LAMP, detail=True, now=0, house="A"))[-1] == "parts"


def test_null_is_not_converted() -> None:
    """It stays null, unless the mark `empty` makes it an empty text. The description says that it may be null."""

    @dataclass
    class Bulb:
        broken_at: Annotated[int | None, Wire("Time of the failure.", "brokenAt", iso)]

    (field,) = wire_fields(Bulb)
    assert field.kind == str | None
    assert answers([Bulb(None), Bulb(0)]) == [{"brokenAt": None}, {"brokenAt": "1970-01-01T00:00:00.000000Z"}]


def test_no_rows_are_an_empty_list() -> None:
    """Then the values of the caller are not needed."""
    assert answers([]) == []


def test_the_description_follows_the_class() -> None:
    """Types, descriptions and the order are those of the answers."""
    schema = TypeAdapter(LampEntry).json_schema()
    assert list(schema["properties"]) == list(answer(LAMP, now=0, house=""))
    assert schema["description"] == "A lamp in a list."
    assert schema["properties"]["litAt"] == {
        "description": "Time of the last light.",
        "title": "Litat",
        "type": "string",
    }
    assert schema["properties"]["isOld"]["type"] == "boolean"


def test_columns_follow_the_class() -> None:
    """The chosen columns come first. A title is the name, unless the class has another one."""
    columns = row_columns(Lamp, "room", links={"room": lambda row: "/"})
    assert [(each.key, each.title, each.kind, each.is_chosen) for each in columns] == [
        ("room", "Place", "text", True),
        ("litAt", "Lit at", "time", False),
        ("isOld", "Is old", "flag", False),
        ("name", "Name", "text", False),
        ("house", "House", "text", False),
    ]
    assert wire_names(Lamp, "domain", "room") == ("domain", "room", "litAt", "isOld", "name", "house")


def test_an_unknown_neighbour_is_an_error() -> None:
    """A value cannot follow a value that does not exist."""

    @dataclass
    class Lost:
        one: Annotated[int, Wire("One.", after="two")]

    ask: Callable[[object], object] = answer
    with pytest.raises(TypeError, match="'two'"):
        ask(Lost(1))
