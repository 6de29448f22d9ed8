"""Fields of a form that name a row of a list which may be long.

A form shows a short list as a choice. If the list has more than SIZE rows, the form shows a text field instead, into
which the person writes the id or the name of a row. So a form reads at most SIZE + 1 rows of each list.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.errors import Invalid
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.console.pages.reading import joined
from sallyport.console.table import SIZE
from sallyport.console.visit import Visit
from sallyport.shell.command import entries

DID: Final = "did"


@dataclass(frozen=True, slots=True)
class ChoiceSource:
    """A list operation, and how a form names its rows.

    kind: the kind of object, for texts. rows: the field of the answer that contains the rows. title: returns the text
    of a row in a choice. value: the field of a row that the form sends. names: the fields of a row by which a person
    can name it. search: the field of a request with a part of a name. id: the field of a row with its id. by_id: the
    field of a request that selects a row by its id; empty if `value` is the id. body: further fields of the request.
    """

    kind: str
    path: str
    rows: str
    title: Callable[[Row], str]
    id: str
    value: str
    names: Sequence[str]
    search: str
    by_id: str = ""
    body: Row = field(default_factory=dict)

    def within(self, **body: JSON) -> "ChoiceSource":
        """Return the same source with further fields of the request."""
        return replace(self, body={**self.body, **body})

    async def read(self, visit: Visit, domain: Domain, body: Row) -> list[Row]:
        """Return the first rows of the list. body: further fields of the request. Raises Refused, StoreError."""
        return entries((await visit.call(self.path, {**self.body, **body}, domain=domain.id)).get(self.rows))


@dataclass(frozen=True, slots=True)
class FieldChoices:
    """The rows that a field can name. choices: (value, text) of each row; empty if the list is too long for a choice.
    hint: how the text field names a row."""

    choices: list[tuple[str, str]]
    is_long: bool
    hint: str

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to choose from."""
        return not self.choices and not self.is_long


async def offer(visit: Visit, domain: Domain, source: ChoiceSource) -> FieldChoices:
    """Return the rows that a field of a form can name. Raises Refused, StoreError."""
    found = await source.read(visit, domain, {"pageSize": SIZE + 1})
    names = f"DID, id or name of the {source.kind}." if source.value == DID else f"Id or name of the {source.kind}."
    if len(found) > SIZE:
        return FieldChoices([], is_long=True, hint=names)
    return FieldChoices([(str(each[source.value]), source.title(each)) for each in found], is_long=False, hint=names)


async def chosen(visit: Visit, domain: Domain, source: ChoiceSource, name: str) -> str:
    """Return the value of the row that a field of the form names; empty if the field is empty.

    name: the name of the field. A part of a name is not enough, because it could select another row than the person
    means. Raises Invalid if no row or several rows have the name. Also raises Refused, StoreError.
    """
    text = visit.fields.get(name, "").strip()
    is_id = text.isascii() and text.isdecimal() and len(text) < 19
    if not text or (is_id and not source.by_id) or (source.value == DID and text.startswith("did:")):
        return text
    found = await source.read(visit, domain, {source.by_id: int(text)}) if is_id else []
    if not found:
        similar = await source.read(visit, domain, {source.search: text, "pageSize": SIZE})
        found = [each for each in similar if fold(text) in (fold(str(each[key])) for key in source.names)]
        if not found:
            raise Invalid.about(_unknown(source, text, similar), name)
    if len(found) > 1:
        ids = joined([each[source.id] for each in found])
        raise Invalid.about(f'several entries have the name "{text}": give the id, {ids}', name)
    return str(found[0][source.value])


def _unknown(source: ChoiceSource, text: str, similar: Sequence[Row]) -> str:
    message = f'no {source.kind} has the id or the name "{text}"'
    named = joined([f"{each[source.names[0]]} (id {each[source.id]})" for each in similar])
    return f"{message}; names that contain it: {named}" if named else message
