"""The desired state of a machine, computed from the store. Each function takes the transaction and the time as
arguments."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol

from sallyport.agentwire.fields import MAX_PAYLOAD, MAX_USERS, NO_PASSWORD
from sallyport.agentwire.state import DesiredGroup, DesiredUser, Rules, State
from sallyport.areas.agents import repo, signers
from sallyport.areas.agents.grants import GRANTS, Access, account_name, is_yes
from sallyport.areas.users.groups.group import allows
from sallyport.areas.users.repo import password_identity
from sallyport.base.errors import WireError
from sallyport.base.wire import decode, dumps, encode
from sallyport.store.model import LISTED, LISTED_TEXTS, Tx, Value, listed
from sallyport.store.slices import SLICE, delete_slice
from sallyport.store.vault import Vault

SSH, PASSWORD = "SSH", "Password"
RESERVED: Final = frozenset(
    {
        "root", "adm", "admin", "wheel", "sudo", "disk", "docker", "lxd", "libvirt", "kvm", "shadow", "staff", "sys",
        "systemd-journal", "bin", "daemon", "kmem", "mem", "tty", "incus", "incus-admin", "sallyport-managed",
    }
)  # fmt: skip
"""Names of system groups that give privileges on hosts. An endpoint group with one of these names is not created on
hosts."""


class PolicyRules(Protocol):
    """The interface to the password policies of machines."""

    def demands(self, tx: Tx, instance_id: int, policy_ids: Sequence[int]) -> tuple[Rules, ...]:
        """Return the rules that a password must meet if a machine's agent generates it. These are the rules of the
        machine's policies, and of the policies in `policy_ids`."""


@dataclass(frozen=True, slots=True)
class Unhashed:
    """A user's password whose hash is not stored yet.

    stamp: the stamp of the sealed password, see `password_stamp`. former: the hash that is stored already, or empty if
    no hash is stored. `former` is usually the hash of the user's previous password. If the same password was only
    sealed again, `former` is the hash of this password.
    """

    user_id: int
    stamp: str
    password: bytes
    former: str


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The desired state of a machine, and further data that are not part of the signed state.

    state: the state, in which the version and the time of issue are still 0. unfit: the names of the users that have
    access but are left out of the state. A user is left out in three cases: an agent would not accept the name or the
    home directory, another user has the same account name, or the state is full. unhashed: the passwords that are
    missing in `state` because they have no hash yet. changes_at: the next time at which a grant ends, in microseconds,
    or None if no grant will end.
    """

    state: State
    unfit: tuple[str, ...] = ()
    unhashed: tuple[Unhashed, ...] = ()
    changes_at: int | None = None

    def with_password(self, at: int) -> list[str]:
        """Return the names of the accounts that have a password and are not expired at time `at`. Only the passwords of
        these accounts can be rotated."""
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
    """Return the identity (associated data) with which the vault seals the hash of a user's password."""
    return f"agent_hashes/{user_id}/hash"


def rotated_hash_identity(row_id: int) -> str:
    """Return the identity (associated data) with which the vault seals the hash of a password that was generated on a
    host."""
    return f"agent_passwords/{row_id}/hash"


class _Capacity:
    """The space that is left in a state: octets, users and groups. An agent refuses a state that exceeds the limits of
    agentwire."""

    def __init__(self, state: State) -> None:
        self._octets = MAX_PAYLOAD - len(dumps(state))
        self._users = MAX_USERS
        self._groups: set[str] = set()

    @property
    def is_used_up(self) -> bool:
        """Whether the state already has the maximum number of users."""
        return not self._users

    def takes(self, user: DesiredUser) -> bool:
        """Reserve space for a user, its new groups and its entry in `takeover`.

        Return False, and reserve nothing, if too little space is left.
        """
        groups = set(user.groups) - self._groups
        each = [user, *map(DesiredGroup, groups), user.name]
        octets = self._octets - sum(len(dumps(one)) + len(",") for one in each)
        if octets < 0 or not self._users or len(self._groups) + len(groups) > MAX_USERS:
            return False
        self._octets, self._users = octets, self._users - 1
        self._groups |= groups
        return True


class Builder:
    """Builds the desired state of one machine within a transaction."""

    def __init__(self, tx: Tx, vault: Vault, policies: PolicyRules, instance_id: int) -> None:
        self._tx = tx
        self._vault = vault
        self._policies = policies
        self._instance = instance_id
        self._unhashed: list[Unhashed] = []
        self._unfit: list[str] = []

    def build(self, accesses: Sequence[Access], at: int) -> DesiredState:
        """Return the state at time `at`, with the users in `accesses`. Raises SecretError if the vault cannot open a
        stored secret."""
        taken_over = repo.takeovers(self._tx, self._instance)
        state = State(
            instance=self._instance,
            version=0,
            issued=0,
            policies=self._policies.demands(self._tx, self._instance, _policies_of(accesses, at)),
            settings=repo.settings_of(self._tx, self._instance),
            triggers=repo.open_triggers(self._tx, self._instance),
            key=b64encode(signers.of_instance(self._tx, self._instance)).decode(),
        )
        users = self._users(accesses, set(taken_over), _Capacity(state), at)
        names = {user.name for user in users}
        state = replace(
            state,
            users=tuple(users),
            groups=tuple(map(DesiredGroup, sorted({group for user in users for group in user.groups}))),
            takeover=tuple(name for name in taken_over if name in names),
        )
        ends = [end for access in accesses if (end := access.next_end(at)) is not None]
        return DesiredState(state, tuple(self._unfit), tuple(self._unhashed), min(ends, default=None))

    def _users(
        self, accesses: Sequence[Access], taken_over: set[str], capacity: _Capacity, at: int
    ) -> list[DesiredUser]:
        methods = self._tx.value(str, "select auth_type from endpoint_instances where id = :id", id=self._instance)
        allowed = {each for each in (SSH, PASSWORD) if allows(methods or "", each)}
        rotated = self._rotated()
        users: dict[str, DesiredUser] = {}
        for access in accesses:
            person = self._person(access.user_id)
            name = account_name(person.name) if person else ""
            if person is None or not name or name in users or capacity.is_used_up:
                self._unfit += [person.name] if person else []
                continue
            lasting = access.lasting(at)
            by_keys, by_password = (
                each in allowed and any(grant.allows(each) for grant in lasting) for each in (SSH, PASSWORD)
            )
            closed = "" if name in taken_over and by_password else NO_PASSWORD
            user = DesiredUser(
                name,
                groups=tuple(sorted({group for grant in lasting if (group := host_group(grant.group))} - {name})),
                privileged=is_yes(person.privileged_user) or any(grant.privileges for grant in lasting),
                home=access.home,
                ssh_keys=tuple(person.ssh_key.splitlines()) if by_keys else (),
                password_hash=(self._hash(person, rotated.get(name)) or closed) if by_password else closed,
                expires=access.until,
            )
            if _fits(user) and capacity.takes(user):
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
        """Return the current passwords that were generated on the host, by account name."""
        rows = self._tx.all(
            _Rotated,
            "select id, account, hash, ended_at from agent_passwords where instance_id = :i and state = 'current'",
            i=self._instance,
        )
        return {row.account: row for row in rows}

    def _hash(self, person: _Person, rotated: _Rotated | None) -> str:
        """Return the hash of the account's newest password. Either the service or the host has set this password.
        Return an empty string if there is no password, or if the password from the service has no stored hash yet."""
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
    """Return a hash over the data from which a state is built, without the time.

    Computing the hash takes about a tenth of the time of building the state. The hash is valid only within one process,
    because Python's `hash` differs between processes.
    """
    people = tx.rows(_PEOPLE, i=instance_id)
    about = tx.rows(_ABOUT, i=instance_id)
    demanded = policies.demands(tx, instance_id, sorted({int(row[0] or 0) for row in people} - {0}))
    return hash((tuple(people), tuple(about), demanded))


_PEOPLE: Final = f"""
select g.policy, g.user_id, g.group_id, g."group", g.ttl, g.privileged, g.home, g.methods, u.name, u.ssh_key,
    u.privileged_user, u.password, h.stamp, h.made_at
from ({GRANTS}) as g join endpoint_users u on u.id = g.user_id left join agent_hashes h on h.user_id = u.id
order by g.user_id, g.group_id
"""  # noqa: S608
_ABOUT: Final = """
select 'auth', auth_type, cast(null as bytea) from endpoint_instances where id = :i
union all select 'taken', account, null from agent_takeovers where instance_id = :i
union all select 'order', cast(id as text), null from agent_orders where instance_id = :i and ended_at is null
union all select 'password', cast(id as text), null from agent_passwords where instance_id = :i and state = 'current'
union all select 'key', '', s.public_key from agents a join agent_signers s on s.domain_id = a.domain_id
    where a.instance_id = :i
union all select 'settings', s.fields, null from agents a join agent_settings s on s.domain_id = a.domain_id
    and s.instance_id in (0, a.instance_id) where a.instance_id = :i
order by 1, 2, 3
"""


def release_names(tx: Tx, user_ids: Sequence[int]) -> int:
    """Detach passwords and take-overs from the account names of users, before the users are deleted.

    Otherwise, a user that is added later with the same name would get the old user's passwords from hosts, and the old
    user's accounts that an agent has taken over. All users must belong to one domain. One call changes at most SLICE
    rows and returns their number, so call it until it returns 0.
    """
    people = tx.rows(f"select name, domain_id from endpoint_users where id in {LISTED}", ids=listed(user_ids))  # noqa: S608
    names = {account_name(str(name)) for name, _ in people} - {""}
    of_domain: dict[str, Value] = {"ids": listed(names), "d": people[0][1] if people else 0}
    held = f"domain_id = :d and account in {LISTED_TEXTS}"
    current = f"select id from agent_passwords where {held} and state in ('current', 'candidate') limit {SLICE}"  # noqa: S608
    made = "update agent_passwords set state = 'former', ended_at = coalesce(ended_at, stored_at)"
    return tx.execute(f"{made} where id in ({current})", **of_domain) or delete_slice(
        tx, "agent_takeovers", "instance_id, account", held, **of_domain
    )


def password_stamp(sealed: bytes) -> str:
    """Return a stamp of a sealed (encrypted) password. The stamp changes whenever the password is sealed again."""
    return sha256(sealed).hexdigest()[:16]


def host_group(group_name: str) -> str:
    """Return the name that a group has on hosts. Return an empty string if hosts do not accept the name, or if RESERVED
    contains the name."""
    name = account_name(group_name)
    return "" if name in RESERVED else name


def _fits(user: DesiredUser) -> bool:
    """Return whether an agent accepts the user. An agent refuses the whole state if one user in the state is
    invalid."""
    try:
        decode(DesiredUser, encode(user))
    except WireError:
        return False
    return True


def _policies_of(accesses: Sequence[Access], at: int) -> list[int]:
    return sorted({grant.policy for access in accesses for grant in access.lasting(at)} - {0})
