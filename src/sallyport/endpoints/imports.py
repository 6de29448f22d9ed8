"""An import, row by row: what each would do to what is there, and the doing of it, all or none.

A row is recognised by its name in the domain. What it does not say stays, and what it assigns comes beside what is
assigned.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from sallyport.base.command import Arguments
from sallyport.base.errors import Conflict, FieldError, Refused
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON, Row
from sallyport.store.model import Store, Tx

ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_ROWS = 1000
"""Of one command: their transaction keeps others' waiting."""


class Outcome(StrEnum):
    """What becomes of a row."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a row would do. changes: the names of what differs. do: does it, in a transaction; None: nothing to do."""

    outcome: Outcome
    name: str
    changes: Sequence[str] = ()
    do: Callable[[Tx], object] | None = None
    reason: str = ""

    def row(self) -> Row:
        """For a person."""
        return {
            "action": self.outcome.value,
            "name": self.name,
            "changes": list[JSON](self.changes),
            "reason": self.reason,
        }


Plan = Callable[[Tx, Mapping[str, object]], Planned]
"""Judges a row. Refused: it cannot be imported."""


class ImportRows(Arguments):
    """Rows for a domain. apply: carry the plan out, where nothing is refused."""

    domain: str
    rows: list[dict[str, object]] = Field(max_length=MAX_ROWS)
    apply: bool = False


async def carry_out(store: Store, plan: Plan, rows: Sequence[Mapping[str, object]], *, apply: bool) -> list[Planned]:
    """What becomes of each row, in their order; with `apply` it is done when this returns. Conflict: one is refused,
    and nothing was done."""

    def work(tx: Tx) -> list[Planned]:
        planned = [_judged(tx, plan, row) for row in rows]
        refused = [each for each in planned if each.outcome is Outcome.REFUSED]
        if apply and refused:
            raise Conflict(f"{refused[0].name}: {refused[0].reason}")
        for each in planned:
            if apply and each.do is not None:
                each.do(tx)
        return planned

    return await (store.write(work) if apply else store.search(work))


def parsed(model: type[ModelT], row: Mapping[str, object]) -> ModelT:
    """A row as its model has it. Invalid, naming columns without values."""
    try:
        return model.model_validate(dict(row))
    except ValidationError as error:
        raise refusal(error) from None


def _judged(tx: Tx, plan: Plan, row: Mapping[str, object]) -> Planned:
    try:
        return plan(tx, row)
    except Refused as error:
        fields: Sequence[FieldError] = getattr(error, "fields", ())
        reason = "; ".join([str(error), *(f"{each.field}: {each.message}" for each in fields)])
        return Planned(Outcome.REFUSED, str(row.get("userName", row.get("instanceName", ""))), reason=reason)
