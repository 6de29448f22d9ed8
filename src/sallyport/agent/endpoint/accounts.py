"""The local accounts and groups of a host, read from passwd(5), shadow(5), group(5) and login.defs(5)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sallyport.agent.endpoint.files import Files
from sallyport.base.clock import SECOND

MANAGED_GROUP: Final = "sallyport-managed"
"""The group of all accounts that the agent manages. Admins recognize managed accounts by this group."""
DAY: Final = 86_400 * SECOND
EXPIRED: Final = 1
"""Expiry day of a locked account, as usermod(8) recommends."""


@dataclass(frozen=True, slots=True)
class Account:
    """A local account. password: the password field of shadow(5). expires: the expiry day in days since 1970, or None
    if the account never expires. groups: the names of the groups that list the account as a member."""

    name: str
    uid: int
    gid: int
    full_name: str
    home: str
    shell: str
    password: str = field(default="", repr=False)
    expires: int | None = None
    groups: frozenset[str] = frozenset()

    @property
    def locked(self) -> bool:
        """Whether the account is locked and expired. Such an account accepts neither a password nor an SSH key."""
        return self.expires == EXPIRED and self.password.startswith("!")


@dataclass(frozen=True, slots=True)
class LocalGroup:
    """A local group. members: the user names, in the order of group(5)."""

    name: str
    gid: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts, groups and login.defs(5) settings of a host."""

    users: Mapping[str, Account]
    groups: Mapping[str, LocalGroup]
    lowest_uid: int
    highest_uid: int
    lowest_gid: int
    hash_method: str

    def is_system(self, account: Account) -> bool:
        """Return whether an account is a system account. The agent never changes a system account."""
        return account.uid < self.lowest_uid or account.name in {"root", "nobody"}

    def in_managed_group(self, name: str) -> bool:
        """Return whether an account is in the group of managed accounts."""
        group = self.groups.get(MANAGED_GROUP)
        return group is not None and name in group.members


def read(files: Files) -> Accounts:
    """Return the accounts and groups of a host. Invalid lines are ignored. Raises HostError if the files cannot be
    read."""
    groups = {
        name: LocalGroup(name, int(gid), tuple(filter(None, members.split(","))))
        for name, _, gid, members in _lines(files, "/etc/group", 4, numbers=(2,))
    }
    shadow = {fields[0]: fields for fields in _lines(files, "/etc/shadow", 9)}
    of: dict[str, set[str]] = {}
    for group in groups.values():
        for member in group.members:
            of.setdefault(member, set()).add(group.name)
    users = {}
    for name, password, uid, gid, full_name, home, shell in _lines(files, "/etc/passwd", 7, numbers=(2, 3)):
        hidden = shadow.get(name, [name, password, "", "", "", "", "", "", ""])
        users[name] = Account(
            name=name,
            uid=int(uid),
            gid=int(gid),
            full_name=full_name.partition(",")[0],
            home=home,
            shell=shell,
            password=hidden[1],
            expires=int(hidden[7]) if hidden[7].isdecimal() else None,
            groups=frozenset(of.get(name, ())),
        )
    settings = dict(_login_defs(files))
    return Accounts(
        users=users,
        groups=groups,
        lowest_uid=_number(settings.get("UID_MIN"), 1000),
        highest_uid=_number(settings.get("UID_MAX"), 60_000),
        lowest_gid=_number(settings.get("GID_MIN"), 1000),
        hash_method=settings.get("ENCRYPT_METHOD", "SHA512").upper(),
    )


def subordinate_uids(files: Files, account: Account, accounts: Accounts) -> tuple[range, ...]:
    """Return the ranges of user ids that subuid(5) gives to an account. Leave out each range that contains the uid of
    another account or overlaps a range of another account. Raises HostError."""
    own: list[range] = []
    others = [range(each.uid, each.uid + 1) for each in accounts.users.values() if each.uid != account.uid]
    octets = files.read("/etc/subuid") or b""
    for line in octets.decode("utf-8", "surrogateescape").splitlines():
        name, _, numbers = line.strip().partition(":")
        start, _, count = numbers.partition(":")
        if _is_id(start) and _is_id(count):
            ranges = own if name in {account.name, str(account.uid)} else others
            ranges.append(range(int(start), int(start) + int(count)))
    return tuple(
        each for each in own if not any(each.start < other.stop and other.start < each.stop for other in others)
    )


def expiry_day(moment: int | None) -> int | None:
    """Return the day on which an account expires, in days since 1970, or None if the account never expires. moment: the
    time until which the account is usable, in microseconds."""
    return None if moment is None else max(-(-moment // DAY), EXPIRED + 1)


def _lines(files: Files, path: str, fields: int, *, numbers: tuple[int, ...] = ()) -> Iterator[list[str]]:
    octets = files.read(path) or b""
    seen = set()
    for line in octets.decode("utf-8", "surrogateescape").split("\n"):
        parts = line.split(":")
        if len(parts) == fields and parts[0] not in seen and all(_is_id(parts[index]) for index in numbers):
            seen.add(parts[0])
            yield parts


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10


def _login_defs(files: Files) -> Iterator[tuple[str, str]]:
    octets = files.read("/etc/login.defs") or b""
    for line in octets.decode("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) >= 2 and not words[0].startswith("#"):
            yield words[0], words[1]


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and _is_id(text) else default
