"""SQL for enrolment links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.factors.bypass_codes import repo as bypass_codes
from sallyport.areas.factors.enrolment.link import KEPT_US, OPEN, RETRY_US, EnrolmentLink, LinkState, Progress
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.passkeys.repo import passkeys_of
from sallyport.areas.users.repo import seed
from sallyport.base.text import fold
from sallyport.store.model import LISTED_TEXTS, Tx, listed
from sallyport.store.slices import delete_slice

_COLUMNS: Final = "id, domain_id, user_name, state, wrong, expires_at"
_IS_OPEN: Final = f"state in ({', '.join(repr(each.value) for each in OPEN)})"
_PUT: Final = (
    "insert into enrolment_links (domain_id, user_key, user_name, group_name, address, state, token_hash, made_at, "
    "expires_at) values (:d, :key, :name, :group, :address, :state, :hash, :at, :until) "
    "on conflict (domain_id, user_key) do update set user_name = excluded.user_name, group_name = excluded.group_name, "
    "address = excluded.address, state = excluded.state, problem = '', token_hash = excluded.token_hash, "
    "browser_hash = '', wrong = 0, made_at = excluded.made_at, expires_at = excluded.expires_at"
)


@dataclass(frozen=True, slots=True)
class QueuedMail:
    """A mail that waits to be sent."""

    id: int
    domain_id: int
    user_name: str
    address: str


def number(tx: Tx, domain_id: int) -> int:
    """Return the number of a domain's links, with those that have ended lately."""
    return tx.value(int, "select count(*) from enrolment_links where domain_id = :d", d=domain_id) or 0


def give(tx: Tx, person: Person, token_hash: str, at: int, expires_at: int) -> None:
    """Store the link that an operator gets. It replaces the former link of the person."""
    _put(tx, person, LinkState.GIVEN, at, expires_at, token_hash=token_hash)


def show(tx: Tx, person: Person, token_hash: str, at: int, expires_at: int) -> bool:
    """Store the link that a challenge shows. It replaces a former link of this kind. Return False if the person has an
    open or queued link of an operator, which stays."""
    sql = (
        "select 1 from enrolment_links where domain_id = :d and user_key = :key and expires_at > :at "
        f"and (({_IS_OPEN} and state <> :shown) or state = :queued)"
    )
    states = {"shown": LinkState.SHOWN.value, "queued": LinkState.QUEUED.value}
    if tx.rows(sql, d=person.domain_id, key=person.key, at=at, **states):
        return False
    _put(tx, person, LinkState.SHOWN, at, expires_at, token_hash=token_hash)
    return True


def checks_passwords(tx: Tx, domain_id: int) -> bool:
    """Return whether the first factor of a domain checks the passwords that a link asks for."""
    sql = "select 1 from domains where id = :d and first_factor not in ('none', 'web')"
    return bool(tx.rows(sql, d=domain_id))


def has_factor(tx: Tx, person: Person, at: int) -> bool:
    """Return whether a person has a passkey, also one of a former host, an app, or a bypass code."""
    if passkeys_of(tx, person) or seed(tx, person.domain_id, person.key) is not None:
        return True
    return bypass_codes.is_usable(tx, person, at)


def queue(tx: Tx, person: Person, address: str, group: str, at: int) -> None:
    """Store a mail that waits to be sent. It replaces the former link of the person."""
    _put(tx, person, LinkState.QUEUED, at, at + KEPT_US, address=address, group=group)


def has_recent_mail(tx: Tx, person: Person, since: int) -> bool:
    """Return whether a mail for a person was queued or sent after a time."""
    sql = (
        "select 1 from enrolment_links where domain_id = :d and user_key = :key and address <> '' and made_at > :since"
    )
    return tx.value(int, sql, d=person.domain_id, key=person.key, since=since) is not None


def _put(
    tx: Tx,
    person: Person,
    state: LinkState,
    at: int,
    expires_at: int,
    *,
    token_hash: str | None = None,
    address: str = "",
    group: str = "",
) -> None:
    tx.execute(
        _PUT,
        d=person.domain_id,
        key=person.key,
        name=person.name,
        group=group,
        address=address,
        state=state.value,
        hash=token_hash,
        at=at,
        until=expires_at,
    )


# --- the person -----------------------------------------------------------------------------------------------------


def bind(tx: Tx, token_hash: str, browser_hash: str, at: int) -> EnrolmentLink | None:
    """Bind an open link to the first browser that sends it, and return it. Return None if the link is unknown, has
    ended or expired, or belongs to another browser."""
    sql = (
        "update enrolment_links set browser_hash = :browser where token_hash = :hash and expires_at > :at "
        f"and {_IS_OPEN} and browser_hash in ('', :browser) returning {_COLUMNS}"
    )
    return tx.one(EnrolmentLink, sql, hash=token_hash, browser=browser_hash, at=at)


def count_wrong(tx: Tx, link_id: int, most: int) -> None:
    """Count a wrong password. The link ends with the last one."""
    sql = (
        "update enrolment_links set wrong = wrong + 1, state = case when wrong + 1 >= :most then :ended else state end "
        "where id = :id"
    )
    tx.execute(sql, id=link_id, most=most, ended=LinkState.ENDED.value)


def use(tx: Tx, link_id: int, token_hash: str, browser_hash: str, at: int) -> bool:
    """End a link because its person has signed in. Return False if the link was used, replaced or ended meanwhile."""
    sql = (
        f"update enrolment_links set state = :used where id = :id and token_hash = :hash and {_IS_OPEN} "
        "and browser_hash = :browser and expires_at > :at"
    )
    used = LinkState.USED.value
    return tx.execute(sql, id=link_id, hash=token_hash, browser=browser_hash, at=at, used=used) > 0


def end_of_people(tx: Tx, domain_id: int, keys: Sequence[str]) -> int:
    """End the open or queued links of people of a domain, by their case-folded names. Return their number."""
    sql = (
        "update enrolment_links set state = :ended, token_hash = null where domain_id = :d "
        f"and user_key in {LISTED_TEXTS} "
        f"and ({_IS_OPEN} or state = :queued)"
    )
    states = {"ended": LinkState.ENDED.value, "queued": LinkState.QUEUED.value}
    return tx.execute(sql, d=domain_id, ids=listed(keys), **states)


# --- mails ----------------------------------------------------------------------------------------------------------


def domains_with_mails(tx: Tx) -> list[int]:
    """Return the domains that have mails to send."""
    sql = "select distinct domain_id from enrolment_links where state in (:queued, :sending)"
    rows = tx.rows(sql, queued=LinkState.QUEUED.value, sending=LinkState.SENDING.value)
    return [int(str(row[0])) for row in rows]


def next_mail(tx: Tx, domain_id: int, token_hash: str, at: int, expires_at: int) -> QueuedMail | None:
    """Take the next mail of a domain for sending, and store its link. A mail whose sending was interrupted is taken
    again. Return None if there is none."""
    chosen = (
        "select id from enrolment_links where domain_id = :d and ((state = :queued and expires_at > :at) "
        "or (state = :sending and made_at <= :late)) order by id limit 1"
    )
    sql = (
        "update enrolment_links set state = :sending, token_hash = :hash, browser_hash = '', wrong = 0, "
        f"made_at = :at, expires_at = :until where id = ({chosen}) returning id, domain_id, user_name, address"
    )
    states = {"queued": LinkState.QUEUED.value, "sending": LinkState.SENDING.value}
    late = at - RETRY_US
    return tx.one(QueuedMail, sql, d=domain_id, hash=token_hash, at=at, until=expires_at, late=late, **states)


def finish_mail(tx: Tx, mail_id: int, token_hash: str, state: LinkState, problem: str = "") -> None:
    """Store the result of sending a mail. A link that was replaced or used meanwhile stays as it is."""
    sql = (
        "update enrolment_links set state = :state, problem = :problem where id = :id and token_hash = :hash "
        "and state = :sending"
    )
    sending = LinkState.SENDING.value
    tx.execute(sql, id=mail_id, hash=token_hash, state=state.value, problem=problem[:200], sending=sending)


def progress(tx: Tx, domain_id: int) -> list[Progress]:
    """Return the progress of the mails to each group of a domain, ordered by name."""
    rows = tx.rows(
        "select group_name, state, count(*), max(made_at) from enrolment_links where domain_id = :d "
        "and group_name <> '' group by group_name, state",
        d=domain_id,
    )
    found: dict[str, dict[str, int]] = {}
    latest: dict[str, int] = {}
    for group, state, count, made_at in rows:
        name = str(group)
        found.setdefault(name, {})[str(state)] = int(str(count))
        latest[name] = max(latest.get(name, 0), int(str(made_at)))
    return [_progress(name, found[name], latest[name]) for name in sorted(found, key=fold)]


def _progress(group: str, counts: dict[str, int], made_at: int) -> Progress:
    queued = counts.get(LinkState.QUEUED, 0) + counts.get(LinkState.SENDING, 0)
    used, failed = counts.get(LinkState.USED, 0), counts.get(LinkState.FAILED, 0)
    total = sum(counts.values())
    return Progress(group, total, queued, total - queued - failed, used, failed, made_at)


# --- the end --------------------------------------------------------------------------------------------------------


def purge(tx: Tx, before: int) -> int:
    """Delete up to SLICE links that have expired before a time. Return their number."""
    return delete_slice(tx, "enrolment_links", "id", "expires_at <= :before", before=before)


def void(tx: Tx) -> None:
    """End all open links, because they may have been used after the backup. Queued mails stay: their links are made
    when they are sent."""
    tx.execute(f"update enrolment_links set state = :ended, token_hash = null where {_IS_OPEN}", ended=LinkState.ENDED)
