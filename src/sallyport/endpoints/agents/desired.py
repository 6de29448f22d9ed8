"""The state that a machine should have, made of what the store says. Functions of a transaction, without a clock."""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol

from sallyport.base.agentwire.fields import MAX_PAYLOAD, MAX_USERS, NAME, NO_PASSWORD
from sallyport.base.agentwire.state import DesiredGroup, DesiredUser, Policy, State
from sallyport.base.errors import WireError
from sallyport.base.wire import decode, dumps, encode
from sallyport.endpoints.agents import orders_repo, settings_repo, signers
from sallyport.endpoints.agents.ways import WAYS, Access, says_yes
from sallyport.endpoints.groups.group import allows
from sallyport.endpoints.membership import LISTED, listed
from sallyport.endpoints.repo import password_identity
from sallyport.store.model import Tx, Value
from sallyport.store.turns import SLICE, delete_slice
from sallyport.store.vault import Vault

SSH, PASSWORD = "SSH", "Password"
RESERVED: Final = frozenset(
    {
        "root", "adm", "admin", "wheel", "sudo", "disk", "docker", "lxd", "libvirt", "kvm", "shadow", "staff", "sys",
        "systemd-journal", "bin", "daemon", "kmem", "mem", "tty", "incus", "incus-admin", "sallyport-managed",
    }
)  # fmt: skip
"""Groups of systems that come with rights: an endpoint group of such a name gives none of them."""
_NAME: Final = re.compile(NAME, re.ASCII)


class PolicyRules(Protocol):
    """Knows the password policies."""

    def demands(self, tx: Tx, instance_id: int, policy_ids: Sequence[int]) -> tuple[Policy, ...]:
        """What the policies of a machine, and these beside them, demand of a password that an agent makes."""


@dataclass(frozen=True, slots=True)
class Unhashed:
    """A password that has no hash yet. former: the hash of the one before, or of this one, sealed anew; or empty."""

    user_id: int
    stamp: str
    password: bytes
    former: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a machine should be like.

    state: without version and time. unfit: users that no agent takes, by their name or their home directory, or that
    the state has no room for. unhashed: passwords that are not in `state` yet. turns_at: when it changes by itself, in
    microseconds.
    """

    state: State
    unfit: tuple[str, ...] = ()
    unhashed: tuple[Unhashed, ...] = ()
    turns_at: int | None = None

    def keeping(self, at: int) -> list[str]:
        """The accounts that a password opens at a time: whose it is to rotate them."""
        return [
            user.name
            for user in self.state.users
            if user.password_hash not in {"", NO_PASSWORD} and (user.expires is None or user.expires > at)
        ]


@dataclass(frozen=True, slots=True)
class _Person:
    id: int
    name: str
    ssh_key: str
    privileged_user: str
    password: bytes | None
    stamp: str | None
    hash: bytes | None
    made_at: int | None


@dataclass(frozen=True, slots=True)
class _Rotated:
    id: int
    account: str
    hash: bytes
    ended_at: int


def hash_identity(user_id: int) -> str:
    """What the hash of a user's password is sealed under."""
    return f"agent_hashes/{user_id}/hash"


def rotated_hash_identity(row_id: int) -> str:
    """What the hash of a password that was made on a host is sealed under."""
    return f"agent_passwords/{row_id}/hash"


class _Room:
    """What is left for users in a state: of one that is longer than the wire's bounds an agent would take nothing."""

    def __init__(self, state: State) -> None:
        self._octets = MAX_PAYLOAD - len(dumps(state))
        self._users = MAX_USERS
        self._groups: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether there is room for nobody more: what a further user is like need not be known."""
        return not self._users

    def takes(self, user: DesiredUser) -> bool:
        """Whether there is room for one more, who has it then; as if he had been taken over."""
        groups = set(user.groups) - self._groups
        each = [user, *map(DesiredGroup, groups), user.name]
        octets = self._octets - sum(len(dumps(one)) + len(",") for one in each)
        if octets < 0 or not self._users or len(self._groups) + len(groups) > MAX_USERS:
            return False
        self._octets, self._users = octets, self._users - 1
        self._groups |= groups
        return True


class Builder:
    """Makes the state of one machine within a transaction."""

    def __init__(self, tx: Tx, vault: Vault, policies: PolicyRules, instance_id: int) -> None:
        self._tx = tx
        self._vault = vault
        self._policies = policies
        self._instance = instance_id
        self._unhashed: list[Unhashed] = []
        self._unfit: list[str] = []

    def build(self, accesses: Sequence[Access], at: int) -> Wanted:
        """The state at a time, with the users who have access. SecretError."""
        taken_over = settings_repo.takeovers(self._tx, self._instance)
        state = State(
            instance=self._instance,
            version=0,
            issued=0,
            policies=self._policies.demands(self._tx, self._instance, _policies_of(accesses, at)),
            settings=settings_repo.of_instance(self._tx, self._instance),
            triggers=orders_repo.open_triggers(self._tx, self._instance),
            key=b64encode(signers.of_instance(self._tx, self._instance)).decode(),
        )
        users = self._users(accesses, set(taken_over), _Room(state), at)
        names = {user.name for user in users}
        state = replace(
            state,
            users=tuple(users),
            groups=tuple(map(DesiredGroup, sorted({group for user in users for group in user.groups}))),
            takeover=tuple(name for name in taken_over if name in names),
        )
        turns = [turn for access in accesses if (turn := access.turns_at(at)) is not None]
        return Wanted(state, tuple(self._unfit), tuple(self._unhashed), min(turns, default=None))

    def _users(self, accesses: Sequence[Access], taken_over: set[str], room: "_Room", at: int) -> list[DesiredUser]:
        methods = self._tx.value(str, "select auth_type from endpoint_instances where id = :id", id=self._instance)
        taken = {each for each in (SSH, PASSWORD) if allows(methods or "", each)}
        rotated = self._rotated()
        users: dict[str, DesiredUser] = {}
        for access in accesses:
            person = self._person(access.user_id)
            name = account_name(person.name) if person else ""
            if person is None or not name or name in users or room.is_full:
                self._unfit += [person.name] if person else []
                continue
            lasting = access.lasting(at)
            by_keys, by_password = (
                each in taken and any(way.lets_in_by(each) for way in lasting) for each in (SSH, PASSWORD)
            )
            closed = "" if name in taken_over and by_password else NO_PASSWORD
            user = DesiredUser(
                name,
                groups=tuple(sorted({group for way in lasting if (group := host_group(way.group))} - {name})),
                privileged=says_yes(person.privileged_user) or any(way.privileges for way in lasting),
                home=access.home,
                ssh_keys=tuple(person.ssh_key.splitlines()) if by_keys else (),
                password_hash=(self._hash(person, rotated.get(name)) or closed) if by_password else closed,
                expires=access.until,
            )
            if _fits(user) and room.takes(user):
                users[name] = user
            else:
                self._unfit.append(person.name)
        return [users[name] for name in sorted(users)]

    def _person(self, user_id: int) -> _Person | None:
        return self._tx.one(
            _Person,
            "select u.id, u.name, u.ssh_key, u.privileged_user, u.password, h.stamp, h.hash, h.made_at "
            "from endpoint_users u left join agent_hashes h on h.user_id = u.id where u.id = :id",
            id=user_id,
        )

    def _rotated(self) -> dict[str, _Rotated]:
        """The passwords in force that were made on the host, by account."""
        rows = self._tx.all(
            _Rotated,
            "select id, account, hash, ended_at from agent_passwords where instance_id = :i and state = 'current'",
            i=self._instance,
        )
        return {row.account: row for row in rows}

    def _hash(self, person: _Person, rotated: _Rotated | None) -> str:
        """Of the password that was set last, here or on the host; empty where there is none, or none yet."""
        made_at = 0
        if person.password is not None:
            stamp = password_stamp(person.password)
            if person.stamp != stamp or person.hash is None:
                clear = self._vault.open(person.password, password_identity(person.id))
                former = b"" if person.hash is None else self._vault.open(person.hash, hash_identity(person.id))
                self._unhashed.append(Unhashed(person.id, stamp, clear, former.decode()))
                return ""
            made_at = person.made_at or 0
        if rotated is not None and rotated.ended_at >= made_at:
            return self._vault.open(rotated.hash, rotated_hash_identity(rotated.id)).decode()
        if person.password is None or person.hash is None:
            return ""
        return self._vault.open(person.hash, hash_identity(person.id)).decode()


def fingerprint(tx: Tx, policies: PolicyRules, instance_id: int) -> int:
    """Another number when what a state is made of has changed, but for the time: a tenth of the work of making it. It
    holds in this process alone."""
    people = tx.rows(_PEOPLE, i=instance_id)
    about = tx.rows(_ABOUT, i=instance_id)
    demanded = policies.demands(tx, instance_id, sorted({int(row[0] or 0) for row in people} - {0}))
    return hash((tuple(people), tuple(about), demanded))


_PEOPLE: Final = f"""
select w.policy, w.user_id, w.group_id, w."group", w.ttl, w.privileged, w.home, w.flow, u.name, u.ssh_key,
    u.privileged_user, u.password, h.stamp, h.made_at
from ({WAYS}) as w join endpoint_users u on u.id = w.user_id left join agent_hashes h on h.user_id = u.id
order by w.user_id, w.group_id
"""  # noqa: S608
_ABOUT: Final = """
select 'auth', auth_type from endpoint_instances where id = :i
union all select 'taken', account from agent_takeovers where instance_id = :i
union all select 'order', id from agent_orders where instance_id = :i and ended_at is null
union all select 'password', id from agent_passwords where instance_id = :i and state = 'current'
union all select 'key', s.public_key from agents a join agent_signers s on s.domain_id = a.domain_id
    where a.instance_id = :i
union all select 'settings', s.fields from agents a join agent_settings s on s.domain_id = a.domain_id
    and s.instance_id in (0, a.instance_id) where a.instance_id = :i
order by 1, 2
"""


def account_name(user_name: str) -> str:
    """What a user is called on hosts; empty where no host takes the name."""
    name = user_name.lower()
    return name if _NAME.fullmatch(name) else ""


def vacate(tx: Tx, user_ids: Sequence[int]) -> int:
    """Prepare the names of users of a domain for other users, up to SLICE rows at a time; how many rows.

    The next user of a name gets neither the passwords that were made for this one on hosts, nor the accounts there that
    were taken over for this one.
    """
    sql = f"select name, domain_id from endpoint_users where id in {LISTED}"  # noqa: S608
    people = tx.rows(sql, ids=listed(user_ids))
    names = {account_name(str(name)) for name, _ in people} - {""}
    same: dict[str, Value] = {"ids": listed(names), "d": people[0][1] if people else 0}
    held = f"{_held('agent_passwords')} and state in ('current', 'candidate')"
    current = f"select id from agent_passwords where {held} limit {SLICE}"  # noqa: S608
    made = "update agent_passwords set state = 'former', ended_at = coalesce(ended_at, stored_at)"
    return tx.execute(f"{made} where id in ({current})", **same) or delete_slice(
        tx, "agent_takeovers", "instance_id, account", _held("agent_takeovers"), **same
    )


def _held(table: str) -> str:
    """Return the condition for the rows of accounts on the machines of a domain. By the account: a domain may have
    many machines, each of which `in` would look at."""
    machine = f"select 1 from agents a where a.instance_id = {table}.instance_id and a.domain_id = :d"  # noqa: S608
    return f"account in {LISTED} and exists ({machine})"


def password_stamp(sealed: bytes) -> str:
    """Tells a sealed password from the one before: it is sealed differently each time."""
    return sha256(sealed).hexdigest()[:16]


def host_group(group_name: str) -> str:
    """What a group is called on hosts; empty where no host takes the name, or has a group of its own by it."""
    name = account_name(group_name)
    return "" if name in RESERVED else name


def _fits(user: DesiredUser) -> bool:
    """Whether an agent takes it: of a state in which one entry does not fit it would take nothing."""
    try:
        decode(DesiredUser, encode(user))
    except WireError:
        return False
    return True


def _policies_of(accesses: Sequence[Access], at: int) -> list[int]:
    return sorted({way.policy for access in accesses for way in access.lasting(at)} - {0})
