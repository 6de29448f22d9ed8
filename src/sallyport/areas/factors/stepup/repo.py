"""SQL for step-ups. Each change of the state is one statement that names the states that it may leave. So of two
changes at the same time only one happens, over all nodes."""

from dataclasses import asdict, fields
from typing import Final

from sallyport.areas.factors.stepup.stepup import KEPT_US, MAX_CODE_MAILS, MAX_MAILS_OF_PERSON, MAX_WRONG, StepUp
from sallyport.areas.mfa.fields import Binding
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Strength
from sallyport.store.erasure import PRESENT
from sallyport.store.model import Tx
from sallyport.store.slices import delete_slice

_NAMES: Final = tuple(each.name for each in fields(StepUp) if each.name != "tenant_id")
_COLUMNS: Final = ", ".join(_NAMES)
_TENANT: Final = "(select tenant_id from domains where domains.id = domain_id) as tenant_id"
_READ: Final = f"select {_COLUMNS}, {_TENANT} from stepups"
_FEW_MAILS: Final = (
    "(select sum(one.page_mails + one.code_mails) from stepups one "
    f"where one.domain_id = stepups.domain_id and one.user_key = stepups.user_key) < {MAX_MAILS_OF_PERSON}"
)
_PLACES: Final = ", ".join(f":{name}" for name in _NAMES)


def add(tx: Tx, new: StepUp) -> None:
    """Insert a step-up. If there is one with this id, keep it."""
    values = {name: value for name, value in asdict(new).items() if name in _NAMES}
    values |= {"factors": ",".join(new.factors), "is_checked": int(new.is_checked)}
    tx.execute(f"insert into stepups ({_COLUMNS}) values ({_PLACES}) on conflict (id) do nothing", **values)


def find(tx: Tx, stepup_id: str) -> StepUp | None:
    """Return a step-up, or None. A step-up of a domain that was removed is not found."""
    return tx.one(_stepup, f"{_READ} where id = :id and {PRESENT}", id=stepup_id)


def find_by_code(tx: Tx, code_hash: str) -> StepUp | None:
    """Return the step-up of a code, or None."""
    return tx.one(_stepup, f"{_READ} where code_hash = :hash and {PRESENT}", hash=code_hash)


def number_of_open(tx: Tx, domain_id: int, user_key: str, now: int) -> int:
    """Return the number of a person's open step-ups."""
    sql = (
        f"select count(*) from stepups where domain_id = :d and user_key = :key and state = '{State.OPEN}' "
        "and expires_at > :now"
    )
    return tx.value(int, sql, d=domain_id, key=user_key, now=now) or 0


def number_of_open_at(tx: Tx, new: StepUp, now: int) -> int:
    """Return the number of a person's open step-ups from the station of a new one."""
    sql = (
        f"select count(*) from stepups where domain_id = :d and user_key = :key and state = '{State.OPEN}' "
        "and expires_at > :now and station = :station and source = :source"
    )
    found = tx.value(int, sql, d=new.domain_id, key=new.user_key, now=now, station=new.station, source=new.source)
    return found or 0


def end_unanswered(tx: Tx, domain_id: int, user_key: str, now: int) -> int:
    """End a person's step-ups that have expired without a proof after a browser had opened their page. Return their
    number. Those of logins without a checked password do not count: anybody may have opened them."""
    sql = (
        f"update stepups set state = '{State.OVER}' where domain_id = :d and user_key = :key "
        f"and state = '{State.OPEN}' and expires_at <= :now and browser_hash <> '' and is_checked = 1"
    )
    return tx.execute(sql, d=domain_id, key=user_key, now=now)


def bind(tx: Tx, stepup_id: str, browser_hash: str, now: int) -> bool:
    """Bind an open step-up to a browser, unless it is bound. Return whether it is bound to this browser now."""
    sql = (
        f"update stepups set browser_hash = :browser where id = :id and state = '{State.OPEN}' and expires_at > :now "
        "and browser_hash in ('', :browser)"
    )
    return tx.execute(sql, id=stepup_id, browser=browser_hash, now=now) == 1


def prove(tx: Tx, stepup_id: str, browser_hash: str, factor: str, strength: Strength, now: int) -> bool:
    """Store the proof of the browser to which an open step-up is bound. Return False if it is not open any more."""
    sql = (
        f"update stepups set state = '{State.PROVEN}', factor = :factor, strength = :strength where id = :id "
        f"and state = '{State.OPEN}' and expires_at > :now and browser_hash = :browser"
    )
    return tx.execute(sql, id=stepup_id, factor=factor, strength=strength, browser=browser_hash, now=now) == 1


def use(tx: Tx, stepup_id: str) -> bool:
    """Mark a proof as used by its login. Return whether it is used now. After this, the login cannot be denied."""
    states = f"'{State.PROVEN}', '{State.USED}'"
    sql = f"update stepups set state = '{State.USED}' where id = :id and state in ({states})"
    return tx.execute(sql, id=stepup_id) == 1


def end(tx: Tx, stepup_id: str, state: State, *, browser_hash: str = "") -> bool:
    """End a step-up whose login has not continued. Return False if it has ended before. browser_hash: if given, the
    browser to which the step-up must be bound."""
    sql = f"update stepups set state = :state where id = :id and state in ('{State.OPEN}', '{State.PROVEN}')"
    if browser_hash:
        return tx.execute(f"{sql} and browser_hash = :browser", id=stepup_id, state=state, browser=browser_hash) == 1
    return tx.execute(sql, id=stepup_id, state=state) == 1


def end_all(tx: Tx, domain_id: int, user_key: str, state: State) -> list[str]:
    """End the open and proven step-ups of a person. Return their ids."""
    sql = (
        "update stepups set state = :state where domain_id = :d and user_key = :key "
        f"and state in ('{State.OPEN}', '{State.PROVEN}') returning id"
    )
    return [str(row[0]) for row in tx.rows(sql, d=domain_id, key=user_key, state=state)]


def take_answer(tx: Tx, stepup_id: str) -> bool:
    """Count a typed answer to the challenge. Return False if the login may not type another one."""
    sql = (
        "update stepups set wrong_digits = wrong_digits + 1 where id = :id and state in "
        f"('{State.OPEN}', '{State.PROVEN}', '{State.USED}') and wrong_digits < {MAX_WRONG}"
    )
    return tx.execute(sql, id=stepup_id) == 1


def end_without_answers(tx: Tx, stepup_id: str) -> int:
    """End a step-up whose login may not type another answer. Return how many answers are left."""
    sql = (
        f"update stepups set state = '{State.WRONG}' where id = :id and state in ('{State.OPEN}', '{State.PROVEN}') "
        f"and wrong_digits >= {MAX_WRONG}"
    )
    tx.execute(sql, id=stepup_id)
    return _left(tx, stepup_id, "wrong_digits")


def take_try(tx: Tx, stepup_id: str, browser_hash: str, now: int) -> bool:
    """Count a try to prove with a typed code. Return False if the step-up is not open, or has no tries left."""
    sql = (
        f"update stepups set wrong_proofs = wrong_proofs + 1 where id = :id and state = '{State.OPEN}' "
        f"and expires_at > :now and browser_hash = :browser and wrong_proofs < {MAX_WRONG}"
    )
    return tx.execute(sql, id=stepup_id, browser=browser_hash, now=now) == 1


def may_mail(tx: Tx, stepup: StepUp) -> bool:
    """Return whether the person of a step-up may get another mail."""
    return tx.value(int, f"select count(*) from stepups where id = :id and {_FEW_MAILS}", id=stepup.id) == 1


def note_page_mail(tx: Tx, stepup_id: str) -> None:
    """Note that the address of a page was sent by mail."""
    tx.execute("update stepups set page_mails = 1 where id = :id", id=stepup_id)


def take_mail(tx: Tx, stepup_id: str, browser_hash: str) -> bool:
    """Count a mail with a code for an open step-up. Return False if the login or its person has had too many."""
    sql = (
        f"update stepups set code_mails = code_mails + 1 where id = :id and state = '{State.OPEN}' "
        f"and browser_hash = :browser and code_mails < {MAX_CODE_MAILS} and {_FEW_MAILS}"
    )
    return tx.execute(sql, id=stepup_id, browser=browser_hash) == 1


def end_without_tries(tx: Tx, stepup_id: str) -> int:
    """End an open step-up without tries for typed codes. Return how many tries are left."""
    sql = (
        f"update stepups set state = '{State.WRONG}' where id = :id and state = '{State.OPEN}' "
        f"and wrong_proofs >= {MAX_WRONG}"
    )
    tx.execute(sql, id=stepup_id)
    return _left(tx, stepup_id, "wrong_proofs")


def _left(tx: Tx, stepup_id: str, column: str) -> int:
    wrong = tx.value(int, f"select {column} from stepups where id = :id", id=stepup_id)
    return 0 if wrong is None else max(0, MAX_WRONG - wrong)


def purge(tx: Tx, now: int) -> int:
    """Delete some step-ups that ended long ago. Return their number."""
    return delete_slice(tx, "stepups", "id", "expires_at < :before", before=now - KEPT_US)


def void(tx: Tx) -> None:
    """Delete all step-ups, because they may have been answered after the backup."""
    tx.execute("delete from stepups")


def _stepup(**row: object) -> StepUp:
    values = dict(row)
    values |= {
        "binding": Binding(str(row["binding"])),
        "factors": tuple(filter(None, str(row["factors"]).split(","))),
        "state": State(str(row["state"])),
        "strength": Strength(str(row["strength"])),
        "is_checked": bool(row["is_checked"]),
    }
    return StepUp(**values)  # type: ignore[arg-type]  # the columns are the fields
