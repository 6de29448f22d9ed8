"""SQL for prompts that several nodes share, and for challenges that expire by the database's clock. Only PostgreSQL has
the table `prompts`.

A row is one question to a provider. In a row with step 0, the question is the prompt of a login. In a row with a higher
step N, the question is whether the user's answer to challenge N of the login is correct. The columns are:

- owner: the session of the node that asks the provider
- waiter: the session of the node where the newest request of the login waits
- key: a value that all requests of the login share. It is null after the result was used; after an approval, the row
  keeps it for HELD_US
- user_key: the key by which the prompts and the codes of the user are counted, or empty
- outcome: empty, FAILED, LIMITED, or a value of `provider.Outcome`
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.login.second import session as sessions
from sallyport.areas.login.second.prompts import A_MINUTE, CODES_A_MINUTE, CODES_OPEN, MINUTE_S, OPEN
from sallyport.areas.login.second.session import LIFETIME_US, Session
from sallyport.areas.mfa.provider import Outcome, Strength
from sallyport.base.clock import SECOND
from sallyport.base.errors import StoreError
from sallyport.nodes.node import DEAD_US
from sallyport.store.model import LISTED_TEXTS, Tx, listed

FAILED: Final = "failed"
"""The outcome of a prompt if its owner could not ask the provider."""
LIMITED: Final = "limited"
"""The outcome of a prompt if the provider's rate limit kept its owner from asking."""
KEPT_US: Final = 300 * SECOND
"""Time in microseconds for which a row is kept after its expiry. It exceeds the lifetime of every State that refers to
the row."""
HELD_US: Final = 3 * SECOND
"""Time in microseconds for which an approved row keeps its key after the result was used. It is longer than a request
is on its way, and shorter than the time after which a NAS repeats a request that got no answer."""
_TRIES: Final = 3
_COUNTING: Final = 1
"""The first number of the advisory locks under which the prompts of a user are counted."""

_PENDING: Final = f"outcome in ('', '{Outcome.WAITING}')"
_ROW: Final = "id = :id and step = :step"
_COLUMNS: Final = (
    "p.id, p.step, p.is_signed, p.key, p.owner, p.waiter, p.outcome, p.answer, "
    "p.consumed_by is not null as is_consumed, p.expires_at - now_us() as left_us, "
    f"exists (select 1 from nodes n where n.session = p.owner and n.seen_at > now_us() - {DEAD_US}) as has_owner"
)


class NoCodeLeft(Exception):
    """Raised if the user has reached the limit of wrong codes."""


class NoPrompt(Exception):
    """Raised if a request must not begin a prompt, and its login has no pending prompt."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of wrong codes. codes: the maximum number within the window; 0 for no limit. window_us: the length of the
    window in microseconds."""

    codes: int
    window_us: int


NO_LIMIT: Final = Limit(0, 0)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A row of `prompts`. handle, text, strength: values from the provider's answer. left_us: the time until the prompt
    expires, in microseconds. has_owner: whether the owner's node is alive. is_signed: whether the first request was
    signed."""

    id: str
    step: int
    is_signed: bool
    key: str
    owner: str
    waiter: str
    outcome: str
    handle: str
    text: str
    is_consumed: bool
    left_us: int
    has_owner: bool
    strength: Strength = Strength.ANY

    @property
    def is_answered(self) -> bool:
        """Whether the outcome is final."""
        return self.outcome not in ("", Outcome.WAITING)


def claim(
    tx: Tx,
    new: Prompt,
    user_key: str,
    codes: Limit = NO_LIMIT,
    *,
    only_joins: bool = False,
    has_code: bool = False,
    is_eap: bool = False,
) -> Prompt | None:
    """Insert a prompt, or return the existing prompt of the same login.

    If the request may join an existing prompt, the node of `new` becomes the waiter. Raises NoPrompt if the login was
    accepted less than HELD_US ago: the request was on its way while another one got the answer. Return None if the user
    has reached the limit of prompts. Raises NoCodeLeft if the user has reached the limit of wrong codes. An advisory
    lock for each user lets the nodes count the prompts and the codes one after the other. Raises StoreError if other
    transactions keep changing the row.

    user_key: the key by which the user's prompts and codes are counted, or empty if this prompt is not counted. codes:
    the limit of wrong codes if the prompt checks a code. has_code: whether the user has typed a code after the
    password, so that the login prompts nobody. only_joins: whether to insert no prompt; without a pending
    prompt of the login, this raises NoPrompt. is_eap: whether the request belongs to an EAP conversation. A new
    conversation is always a new login.
    """
    if user_key:
        tx.rows(f"select pg_advisory_xact_lock({_COUNTING}, hashtext(:user_key))", user_key=user_key)
    for _ in range(_TRIES):
        if not only_joins and _insert(tx, new, user_key):
            if codes.codes and _has_no_code_left(tx, user_key, codes):
                raise NoCodeLeft
            if user_key and not new.step and _is_over_limit(tx, user_key, has_code=has_code):
                discard(tx, new)
                return None
            return new
        found = tx.one(
            _prompt,
            f"select {_COLUMNS} from prompts p where (p.id = :id and p.step = :step) or p.key = :key for update of p",
            id=new.id,
            step=new.step,
            key=new.key or None,
        )
        is_other = found is not None and found.id != new.id
        if found is not None and is_other and (found.left_us <= 0 or (found.is_consumed and (is_eap or has_code))):
            # no login waits for this prompt any more
            tx.execute(f"update prompts set key = null where {_ROW}", id=found.id, step=found.step)
        elif found is not None and is_other and found.is_consumed:
            raise NoPrompt
        elif found is not None:
            if is_same(found, new) and found.waiter != new.waiter:
                move(tx, found, new.waiter)
            return found
        elif only_joins:
            raise NoPrompt
    raise StoreError("other nodes keep changing the prompt of this login")


def is_same(found: Prompt, new: Prompt) -> bool:
    """Return whether a request may join an existing prompt.

    The prompt's result must be unused. If the prompt checks a typed code, the request must contain the same code. An
    unsigned request must not replace a signed one.
    """
    return not found.is_consumed and (not new.step or found.key == new.key) and (new.is_signed or not found.is_signed)


def _insert(tx: Tx, new: Prompt, user_key: str) -> bool:
    sql = (
        "insert into prompts "
        "(id, step, is_signed, key, user_key, owner, waiter, outcome, answer, begun_at, expires_at) values "
        "(:id, :step, :is_signed, :key, :user_key, :owner, :waiter, :outcome, :answer, now_us(), now_us() + :left_us) "
        "on conflict do nothing"
    )
    inserted = tx.execute(
        sql,
        id=new.id,
        step=new.step,
        is_signed=int(new.is_signed),
        key=new.key or None,
        user_key=user_key,
        owner=new.owner,
        waiter=new.waiter,
        outcome=new.outcome,
        answer=json.dumps([new.handle, new.text]),
        left_us=new.left_us,
    )
    return inserted == 1


def discard(tx: Tx, new: Prompt) -> None:
    """Delete a prompt that `claim` has inserted in the same transaction."""
    tx.execute(f"delete from prompts where {_ROW}", id=new.id, step=new.step)


def deny(tx: Tx, user_key: str) -> None:
    """Deny a user's prompts whose result was not used yet. Their owners lose them, so that no answer of a provider is
    stored any more. An approval that a node is about to use cannot be used, not even if the prompt has just expired."""
    tx.execute(
        f"update prompts set outcome = '{Outcome.NOT_ME}', owner = '', "
        f"waiter = case when outcome = '{Outcome.APPROVED}' then '' else waiter end "
        f"where user_key = :user_key and consumed_by is null "
        f"and ({_PENDING} or outcome = '{Outcome.APPROVED}')",
        user_key=user_key,
    )


def _is_over_limit(tx: Tx, user_key: str, *, has_code: bool) -> bool:
    most_open, a_minute = (CODES_OPEN, CODES_A_MINUTE) if has_code else (OPEN, A_MINUTE)
    (count,) = tx.rows(
        f"select count(*) filter (where begun_at > now_us() - {int(MINUTE_S * SECOND)}) > {a_minute} "
        f"or count(*) filter (where {_PENDING} and consumed_by is null and expires_at > now_us()) > {most_open} "
        "from prompts where user_key = :user_key and step = 0",
        user_key=user_key,
    )
    return bool(count[0])


def _has_no_code_left(tx: Tx, user_key: str, limit: Limit) -> bool:
    """Return whether the codes of a user exceed the limit: the wrong codes since the last approval, and the codes that
    are being checked, with the code of the new prompt."""
    count = tx.value(
        int,
        f"select count(*) from prompts where user_key = :user_key and (outcome = '{Outcome.WRONG_CODE}' "
        "or (outcome = '' and consumed_by is null and expires_at > now_us())) "
        "and begun_at > greatest(now_us() - :window, (select max(begun_at) from prompts "
        f"where user_key = :user_key and outcome = '{Outcome.APPROVED}'))",
        user_key=user_key,
        window=limit.window_us,
    )
    return (count or 0) > limit.codes


def forget_codes(tx: Tx, user_key: str) -> None:
    """Reset the count of a user's wrong codes."""
    sql = f"update prompts set user_key = '' where user_key = :user_key and outcome = '{Outcome.WRONG_CODE}'"
    tx.execute(sql, user_key=user_key)


def read(tx: Tx, ids: list[str]) -> list[Prompt]:
    """Return the prompts with these ids, of all steps."""
    return tx.all(_prompt, f"select {_COLUMNS} from prompts p where p.id in {LISTED_TEXTS}", ids=listed(ids))


def answered(
    tx: Tx, prompt: Prompt, outcome: str, handle: str, text: str, strength: Strength = Strength.ANY
) -> Prompt | None:
    """Store the provider's answer, and return the new row. Return None if another node owns the prompt now, or if the
    row no longer exists."""
    return tx.one(
        _prompt,
        f"update prompts p set outcome = :outcome, answer = :answer where {_ROW} and owner = :owner "
        f"returning {_COLUMNS}",
        id=prompt.id,
        step=prompt.step,
        owner=prompt.owner,
        outcome=outcome,
        # a node of an earlier release reads answers without a strength only
        answer=json.dumps([handle, text] if strength is Strength.ANY else [handle, text, strength]),
    )


def take_over(tx: Tx, prompt: Prompt, node: str) -> Prompt | None:
    """Make a node the owner of a pending prompt, and return the new row. Return None if the owner has changed since
    `prompt` was read, or if the prompt has ended."""
    return tx.one(
        _prompt,
        f"update prompts p set owner = :node where {_ROW} and owner = :owner and consumed_by is null and {_PENDING} "
        f"returning {_COLUMNS}",
        id=prompt.id,
        step=prompt.step,
        owner=prompt.owner,
        node=node,
    )


def give_up(tx: Tx, node: str, only: Sequence[tuple[str, int]] | None = None) -> None:
    """Give up the ownership of a node's pending prompts, so that another node can take these prompts over. only: the
    ids and the steps of the prompts; None for all."""
    sql = f"update prompts set owner = '' where owner = :node and consumed_by is null and {_PENDING}"
    if only is None:
        tx.execute(sql, node=node)
    else:
        places = listed(f"{id_}/{step}" for id_, step in only)
        tx.execute(f"{sql} and id || '/' || step in {LISTED_TEXTS}", node=node, ids=places)


def move(tx: Tx, prompt: Prompt, node: str) -> Prompt | None:
    """Make a node the waiter of a prompt, and return the new row. Return None if the result was already used."""
    return tx.one(
        _prompt,
        f"update prompts p set waiter = :node where {_ROW} and consumed_by is null returning {_COLUMNS}",
        id=prompt.id,
        step=prompt.step,
        node=node,
    )


def consume(tx: Tx, prompt: Prompt, node: str) -> bool:
    """Mark the result as used by a node. Return False if the result was already used, or if the login waits at another
    node. After an approval, `claim` finds the row for HELD_US more, so that a request that was already on its way to
    another node sends no second prompt."""
    is_approved = f"outcome = '{Outcome.APPROVED}'"
    sql = (
        f"update prompts set consumed_by = :node, key = case when {is_approved} then key end, "
        f"expires_at = case when {is_approved} then least(expires_at, now_us() + {HELD_US}) else expires_at end "
        f"where {_ROW} and consumed_by is null and waiter = :node"
    )
    return tx.execute(sql, id=prompt.id, step=prompt.step, node=node) == 1


def holds(tx: Tx, prompt: Prompt, node: str) -> bool:
    """Return whether the newest request of a login waits at a node. The row is locked, so this cannot change before the
    end of the transaction."""
    sql = f"select 1 from prompts where {_ROW} and consumed_by is null and waiter = :node for update"
    return bool(tx.rows(sql, id=prompt.id, step=prompt.step, node=node))


def purge(tx: Tx) -> None:
    """Delete expired prompts and challenges."""
    tx.execute(f"delete from prompts where expires_at < now_us() - {KEPT_US}")
    tx.execute("delete from challenges where expires_at < now_us()")


def send(tx: Tx, session: Session) -> None:
    """Store a challenge that expires by the database's clock."""
    sessions.write(tx, session)
    tx.execute(f"update challenges set expires_at = now_us() + {LIFETIME_US} where id = :id", id=session.id)


def sent(tx: Tx, challenge_id: str) -> tuple[Session, int] | None:
    """Return a challenge, and the time until it expires, in microseconds. Return None if the challenge does not
    exist."""
    session = sessions.read(tx, challenge_id)
    left_us = tx.value(int, "select expires_at - now_us() from challenges where id = :id", id=challenge_id)
    return None if session is None or left_us is None else (session, left_us)


def _prompt(
    *,
    id: str,
    step: int,
    is_signed: int,
    key: str | None,
    owner: str,
    waiter: str,
    outcome: str,
    answer: str,
    is_consumed: int,
    left_us: int,
    has_owner: int,
) -> Prompt:
    handle, text, *strength = json.loads(answer)
    return Prompt(
        id,
        step,
        bool(is_signed),
        key or "",
        owner,
        waiter,
        outcome,
        handle,
        text,
        bool(is_consumed),
        left_us,
        bool(has_owner),
        *map(Strength, strength),
    )
