"""Passwords that agents generate on hosts. The service stores each password before it can be valid on the host, and
keeps it at least until another password is valid.

A rotation has two steps. Each step sets the state of the stored password:

    step      state        meaning
    escrow    candidate    The password is sealed and stored. The host changes nothing before the service has answered.
    confirm   current      The password is valid. The password that was current until now becomes `former`. It is kept,
                           because a host that is restored from a backup has this password again.
    abandon   (deleted)    The password was never valid. This step replaces `confirm`.

If the agent sends neither confirm nor abandon, the candidate may be valid on the host. The service then shows the
candidate together with the current password, until the agent confirms a later candidate of the same account.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from sallyport.agentwire.fields import MAX_USERS
from sallyport.agentwire.report import Phase, Rotation
from sallyport.agentwire.state import TriggerKind
from sallyport.areas.agents import repo
from sallyport.areas.agents.desired import rotated_hash_identity
from sallyport.areas.agents.grants import account_name
from sallyport.areas.agents.orders import Orders
from sallyport.areas.agents.states import States
from sallyport.areas.users import repo as secrets
from sallyport.areas.users.accounts import repo as accounts
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, NotFound, SallyportError
from sallyport.base.wire import JSON
from sallyport.nodes.periodic import every
from sallyport.nodes.service import Cluster
from sallyport.store.audit import HIDDEN, record_in
from sallyport.store.inserts import insert_row
from sallyport.store.model import Store, Tx, Value
from sallyport.store.vault import Vault

MAX_CANDIDATES: Final = 20
"""Maximum number of candidates of an account. If another candidate arrives, the oldest becomes a former password. The
agent can still confirm it."""
KEPT_FORMER: Final = 5
MAX_ACCOUNTS: Final = 5 * MAX_USERS
"""Maximum number of accounts of a machine for which passwords are stored, including deleted accounts. The limit exists
because the current passwords are read each time the desired state of the machine is built."""
SWEEP_S: Final = 60.0
AGAIN_US: Final = 3600 * SECOND
"""Pause in microseconds after a failed rotation, before the next scheduled rotation."""
DAY: Final = 86_400 * SECOND

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored password of an account. rotation: the id of the rotation. state: `candidate`, `current` or `former`.
    ended_at: the time of the confirm step, or None if the password was not confirmed. Times are in microseconds."""

    id: int
    account: str
    rotation: str
    password: bytes
    state: str
    stored_at: int
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class ShownPassword:
    """A password that is shown to an admin. state: `current`, `candidate` or `former` for a password that was generated
    on the host; `set` for the password of the endpoint user."""

    password: str
    state: str
    at: int


class Rotations:
    """The service for the passwords that agents generate. The task `run` must run, because it orders scheduled
    rotations."""

    def __init__(
        self, store: Store, vault: Vault, cluster: Cluster, states: States, orders: Orders, clock: Clock = now_us
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._vault = vault
        self._states = states
        self._orders = orders
        self._clock = clock

    async def take(self, instance_id: int, message: Rotation) -> None:
        """Store a step of a rotation. If the agent sends a step twice, the second one changes nothing.

        Raises NotFound if the rotation of a confirm step is unknown, or if the instance has no agent. Raises Conflict
        if the rotation of an abandon step is confirmed or belongs to another account. Raises Conflict if another
        password is stored under the same rotation id, or if too many accounts have passwords.
        """
        step = {Phase.ESCROW: self._escrow, Phase.CONFIRM: self._confirm, Phase.ABANDON: self._abandon}[message.phase]

        def transaction(tx: Tx) -> None:
            step(tx, repo.found(tx, instance_id), message)

        await self._store.write(transaction)
        self._states.touch(instance_id)

    def _escrow(self, tx: Tx, agent: repo.Agent, message: Rotation) -> None:
        known = _get(tx, agent.instance_id, message.id)
        if known is not None:
            if (known.account, self._open(known)) != (message.user, message.password):
                raise Conflict("this rotation id is already stored with another password")
            return
        if not _is_there_room(tx, agent.instance_id, message.user):
            raise Conflict(
                f"{MAX_ACCOUNTS} accounts of this instance have generated passwords already; no other account "
                "can get one"
            )
        open_ones = _of_account(tx, agent.instance_id, message.user, "candidate")
        for old in open_ones[: max(0, len(open_ones) + 1 - MAX_CANDIDATES)]:
            tx.execute("update agent_passwords set state = 'former' where id = :id", id=old.id)
            self._forget_former(tx, agent.instance_id, message.user)
        row_id = insert_row(
            tx,
            "agent_passwords",
            domain_id=agent.domain_id,
            instance_id=agent.instance_id,
            account=message.user,
            rotation=message.id,
            password=b"",
            hash=b"",
            state="candidate",
            stored_at=self._clock(),
        )
        tx.execute(
            "update agent_passwords set password = :password, hash = :hash where id = :id",
            password=self._vault.seal(message.password.encode(), _identity(row_id or 0)),
            hash=self._vault.seal(message.password_hash.encode(), rotated_hash_identity(row_id or 0)),
            id=row_id,
        )

    def _confirm(self, tx: Tx, agent: repo.Agent, message: Rotation) -> None:
        known = _get(tx, agent.instance_id, message.id)
        if known is None or known.account != message.user:
            raise NotFound("rotation not found")
        if known.ended_at is not None:
            return
        at, where = self._clock(), "instance_id = :i and account = :account"
        same: dict[str, Value] = {"i": agent.instance_id, "account": message.user}
        tx.execute(f"update agent_passwords set state = 'former' where {where} and state = 'current'", **same)  # noqa: S608
        tx.execute("update agent_passwords set state = 'current', ended_at = :at where id = :id", at=at, id=known.id)
        sql = f"delete from agent_passwords where {where} and ended_at is null and id < :id"  # noqa: S608
        tx.execute(sql, id=known.id, **same)
        self._forget_former(tx, agent.instance_id, message.user)
        changes: dict[str, JSON] = {"password": HIDDEN}
        target = f"account {message.user} on instance {agent.instance_id} {agent.name}"
        record_in(tx, "agent.password.rotate", agent.domain_id, target, changes, at=at)

    def _forget_former(self, tx: Tx, instance_id: int, account: str) -> None:
        for old in _of_account(tx, instance_id, account, "former")[:-KEPT_FORMER]:
            tx.execute("delete from agent_passwords where id = :id", id=old.id)

    def _abandon(self, tx: Tx, agent: repo.Agent, message: Rotation) -> None:
        known = _get(tx, agent.instance_id, message.id)
        if known is None:
            return
        if known.ended_at is not None or known.account != message.user:
            raise Conflict("this rotation is confirmed already, or belongs to another account")
        tx.execute("delete from agent_passwords where id = :id", id=known.id)

    # --- for admins -------------------------------------------------------------------------------------------

    async def show(self, domain_id: int, instance_id: int, user_name: str, *, reveal: bool) -> list[ShownPassword]:
        """Return the passwords that may be valid for an account, the most likely first, and then former passwords.
        Record the call in the audit trail.

        reveal: whether to return the passwords; if False, HIDDEN replaces each password. Raises NotFound if the
        instance has no agent. Raises SecretError if the vault cannot open a password.
        """

        def transaction(tx: Tx) -> list[ShownPassword]:
            agent = repo.found(tx, instance_id, domain_id)
            shown: dict[str, JSON] = {"secrets": "shown" if reveal else "hidden"}
            target = f"account {user_name} on instance {instance_id} {agent.name}"
            record_in(tx, "agent.password.read", domain_id, target, shown, at=self._clock())
            found = self._known(tx, agent, account_name(user_name), user_name)
            return found if reveal else [ShownPassword(HIDDEN, each.state, each.at) for each in found]

        return await self._store.write(transaction)

    def _known(self, tx: Tx, agent: repo.Agent, account: str, user_name: str) -> list[ShownPassword]:
        current, candidates, former = (
            _of_account(tx, agent.instance_id, account, state)[::-1] for state in ("current", "candidate", "former")
        )
        made = [ShownPassword(self._open(each), each.state, each.ended_at or each.stored_at) for each in current]
        user = accounts.named(tx, agent.domain_id, user_name)
        if user is not None and user.has_password:
            at = tx.value(int, "select made_at from agent_hashes where user_id = :u", u=user.id) or 0
            if not made or at > made[0].at:
                password, _ = secrets.secrets(tx, self._vault, user.id)
                made.insert(0, ShownPassword((password or b"").decode("utf-8", "replace"), "set", at))
        made += [ShownPassword(self._open(each), each.state, each.stored_at) for each in candidates]
        return made + [ShownPassword(self._open(each), each.state, each.ended_at or each.stored_at) for each in former]

    def _open(self, stored: Stored) -> str:
        return self._vault.open(stored.password, _identity(stored.id)).decode()

    # --- by schedule ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Order the rotations that are due, until cancelled. One node runs this task for all nodes."""
        await every(SWEEP_S, self.sweep, failure="password_rotation_failed")

    async def sweep(self) -> None:
        """Order the rotations that are due. `run` calls this periodically. Raises StoreError."""
        for instance_id, days in await self._store.read(_scheduled):
            try:
                await self._sweep_one(instance_id, days)
            except NotFound:
                continue
            except SallyportError as error:  # continue with the other machines
                log.warning("password_rotation_not_ordered", instance=instance_id, error=str(error))

    async def _sweep_one(self, instance_id: int, days: int) -> None:
        issued = await self._states.current(instance_id)
        with_password = issued.desired.with_password(self._clock())
        due = await self._store.search(partial(self._due, issued.domain_id, instance_id, days, with_password))
        if due:
            await self._store.write(partial(self._order, issued.domain_id, instance_id, due))
            self._states.touch(instance_id)

    def _due(self, domain_id: int, instance_id: int, days: int, names: Sequence[str], tx: Tx) -> list[str]:
        """Return the names of the accounts whose passwords are due for a rotation.

        No password is due while an order to rotate is open. If an order to rotate has failed, no password is due during
        the next AGAIN_US microseconds. days: the maximum age of a password.
        """
        at = self._clock()
        if any(
            each.kind is TriggerKind.ROTATE
            and (each.ended_at is None or (each.error and at - each.ended_at < AGAIN_US))
            for each in repo.newest_orders(tx, instance_id, repo.KEPT_ORDERS)
        ):
            return []
        return [name for name in names if at - self._rotated_at(tx, domain_id, instance_id, name) >= days * DAY]

    def _order(self, domain_id: int, instance_id: int, due: Sequence[str], tx: Tx) -> None:
        self._cluster.check(tx)  # another node may have ordered one that is done already
        self._orders.give_in(tx, domain_id, instance_id, TriggerKind.ROTATE, due)

    def _rotated_at(self, tx: Tx, domain_id: int, instance_id: int, account: str) -> int:
        """Return the time at which the newest password of an account was set, in microseconds, or 0 if none was set.
        The password may have been set by the service, or by a rotation on the host."""
        current = _of_account(tx, instance_id, account, "current")
        user = accounts.named(tx, domain_id, account)
        made = tx.value(int, "select made_at from agent_hashes where user_id = :u", u=user.id if user else 0) or 0
        return max([made, *(each.ended_at or 0 for each in current)])


def _get(tx: Tx, instance_id: int, rotation: str) -> Stored | None:
    sql = f"{_SELECT} where instance_id = :i and rotation = :rotation"
    return tx.one(Stored, sql, i=instance_id, rotation=rotation)


def _of_account(tx: Tx, instance_id: int, account: str, state: str) -> list[Stored]:
    """Return the passwords of an account with this state, the oldest first."""
    sql = f"{_SELECT} where instance_id = :i and account = :account and state = :state order by id"
    return tx.all(Stored, sql, i=instance_id, account=account, state=state)


def _is_there_room(tx: Tx, instance_id: int, account: str) -> bool:
    """Return whether another password of an account can be stored. This is the case if a password of the account is
    stored already, or if fewer than MAX_ACCOUNTS accounts of the machine have a stored password."""
    sql = (
        "select exists (select 1 from agent_passwords where instance_id = :i and account = :account) or "
        "(select count(distinct account) from agent_passwords where instance_id = :i) < :most"
    )
    return bool(tx.value(int, sql, i=instance_id, account=account, most=MAX_ACCOUNTS))


_SELECT: Final = "select id, account, rotation, password, state, stored_at, ended_at from agent_passwords"


def _scheduled(tx: Tx) -> list[tuple[int, int]]:
    """Return (instance id, days between two rotations) for each machine with scheduled rotations."""
    agents = tx.rows(
        "select a.instance_id, a.domain_id from agents a where exists (select 1 from agent_settings s where "
        "s.domain_id = a.domain_id and s.instance_id in (0, a.instance_id) and s.fields like '%rotateDays%')"
    )
    found = []
    for instance_id, domain_id in agents:
        days = repo.merged_settings(tx, int(domain_id or 0), int(instance_id or 0)).get("rotateDays")
        if isinstance(days, int) and days > 0:
            found.append((int(instance_id or 0), days))
    return found


def _identity(row_id: int) -> str:
    return f"agent_passwords/{row_id}/password"
