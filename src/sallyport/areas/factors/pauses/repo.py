"""SQL for pauses of prompts. Times are in microseconds."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso
from sallyport.store.model import Tx, Value, columns_of, without_case

PAUSE_US: Final = 600 * SECOND
MAX_UNANSWERED: Final = 2
"""Number of prompts in a row without an answer after which a pause begins."""
KEPT_US: Final = 3600 * SECOND
"""Time after which a prompt without an answer, or an ended pause, is forgotten."""

Person = tuple[int, str]
"""The id of the domain and the user's name in the form for comparison."""


class PauseReason(StrEnum):
    """The reasons for a pause of prompts."""

    NOT_ME = "not me"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Pause:
    """A person without prompts at present, or with an unanswered prompt."""

    domain_id: int
    user_key: str
    user_name: Annotated[str, Wire("Name of the user.", "userName", title="User")]
    reason: Annotated[
        str,
        Wire(
            "`not me`: the user has denied a login. `unanswered`: the user has not answered the last prompts.",
            kind=PauseReason,
        ),
    ]
    unanswered: Annotated[int, Wire("Number of prompts in a row that the user has not answered.")]
    at: Annotated[int, Wire("Time of the denial or of the last such prompt, ISO 8601 in UTC.", "since", convert=iso)]
    until: Annotated[int, Wire("End of the pause, ISO 8601 in UTC.", convert=iso)]


_COLUMNS: Final = ", ".join(columns_of(Pause))
_ROW: Final = "domain_id = :d and user_key = :key"


def read(tx: Tx, person: Person) -> Pause | None:
    """Return a person's pause, which may have ended, or None."""
    domain_id, key = person
    return tx.one(Pause, f"select {_COLUMNS} from prompt_pauses where {_ROW}", d=domain_id, key=key)


def count_unanswered(tx: Tx, person: Person, name: str, now: int) -> Pause:
    """Count a prompt without an answer, and return the row. If the person has not answered MAX_UNANSWERED prompts in a
    row, a pause begins. A pause that has not ended stays as it is."""
    domain_id, key = person
    found = tx.all(
        Pause,
        f"insert into prompt_pauses ({_COLUMNS}) values (:d, :key, :name, '', 1, :now, 0) "
        "on conflict (domain_id, user_key) do update set user_name = excluded.user_name, at = excluded.at, "
        "unanswered = case when prompt_pauses.at > :since then prompt_pauses.unanswered + 1 else 1 end "
        f"returning {_COLUMNS}",
        d=domain_id,
        key=key,
        name=name,
        now=now,
        since=now - KEPT_US,
    )[0]
    if found.unanswered < MAX_UNANSWERED or found.until > now:
        return found
    begun = replace(found, reason=PauseReason.UNANSWERED.value, until=now + PAUSE_US)
    tx.execute(
        f"update prompt_pauses set reason = :reason, until = :until where {_ROW}",
        d=domain_id,
        key=key,
        reason=begun.reason,
        until=begun.until,
    )
    return begun


def begin(tx: Tx, person: Person, name: str, now: int) -> bool:
    """Begin a pause after a denial. Return False if such a pause of the person has not ended yet: it stays as it is."""
    before = read(tx, person)
    if before is not None and before.reason == PauseReason.NOT_ME and before.until > now:
        return False
    domain_id, key = person
    tx.execute(
        f"insert into prompt_pauses ({_COLUMNS}) values (:d, :key, :name, :reason, 0, :now, :until) "
        "on conflict (domain_id, user_key) do update set user_name = excluded.user_name, reason = excluded.reason, "
        "at = excluded.at, until = excluded.until",
        d=domain_id,
        key=key,
        name=name,
        reason=PauseReason.NOT_ME.value,
        now=now,
        until=now + PAUSE_US,
    )
    return True


def answered(tx: Tx, person: Person) -> None:
    """Forget a person's prompts without an answer, and the pause that they have begun. A pause because of a denial
    stays."""
    domain_id, key = person
    tx.execute(
        f"delete from prompt_pauses where {_ROW} and reason <> :not_me",
        d=domain_id,
        key=key,
        not_me=PauseReason.NOT_ME.value,
    )


def delete(tx: Tx, person: Person) -> Pause | None:
    """Delete a person's pause and count of prompts, and return them. Return None if there are none."""
    found = read(tx, person)
    domain_id, key = person
    tx.execute(f"delete from prompt_pauses where {_ROW}", d=domain_id, key=key)
    return found


def page(tx: Tx, domain_id: int, now: int, search: str, *, offset: int, limit: int) -> tuple[list[Pause], int]:
    """Return one page of a domain's current pauses, ordered by user, and the number of all matches. search: a part of
    the name, or empty."""
    where, given = "from prompt_pauses where domain_id = :d and until > :now", dict[str, Value](d=domain_id, now=now)
    if search:
        column, given["search"] = without_case("user_name", search)
        where += f" and instr({column}, :search) > 0"
    sql = f"select {_COLUMNS} {where} order by user_key limit :limit offset :offset"
    rows = tx.all(Pause, sql, limit=limit, offset=offset, **given)
    return rows, tx.value(int, f"select count(*) {where}", **given) or 0


def purge(tx: Tx, now: int) -> int:
    """Delete the rows that are forgotten."""
    return tx.execute("delete from prompt_pauses where at <= :since and until <= :now", since=now - KEPT_US, now=now)
