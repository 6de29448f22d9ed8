"""Discovers the local accounts and groups of a host, with their sudo rights, SSH keys and last logins. It also finds
the accounts with root privileges."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from sallyport.agent.endpoint.accounts import DAY, Account, Accounts
from sallyport.agent.endpoint.change import SUDO_GROUPS
from sallyport.agent.endpoint.executor import Executor
from sallyport.agent.endpoint.files import Files
from sallyport.agent.endpoint.keys import found, printable
from sallyport.agent.endpoint.sudoers import FILE, ROOT_GROUPS, Sudoers
from sallyport.agent.endpoint.sudoers import read as read_sudoers
from sallyport.agentwire.fields import MAX_FOUND, MAX_REPORT
from sallyport.agentwire.report import Discovery, Drift, DriftKind, FoundAccount, FoundGroup, FoundKey, Privilege
from sallyport.agentwire.state import State
from sallyport.base.clock import SECOND
from sallyport.base.errors import HostError
from sallyport.base.wire import dumps

_LASTLOG: Final = struct.Struct("<i32s256s")
"""The record of lastlog(5): seconds since 1970, terminal, host. The uid is the number of the record."""
_UTMP: Final = struct.Struct("<hh i 32s 4s 32s 256s hh i i i 16s 20s")
"""The record of utmp(5) on 64-bit Linux: type, process, terminal, id, user, host, exit, session, seconds, microseconds,
address."""
_USER_PROCESS: Final = 7
_NEWEST_LOGINS: Final = 5000
"""Number of records that are read from the end of wtmp (2 MB)."""
_MAX_KEYS: Final = 100
"""Maximum number of SSH keys that are reported for each account."""
_MAX_OCTETS: Final = MAX_REPORT // 2
"""Maximum size of a discovery in octets. It is half of a report's maximum size, because a report also has other
content."""


def discover(accounts: Accounts, executor: Executor, now: int) -> Discovery:
    """Return the accounts and groups of a host, truncated to the limits of a message."""
    files = executor.files
    sudoers = read_sudoers(files)
    logins = _last_logins(files, accounts)
    made = set(executor.memory.now.groups)
    by_uid = sorted(accounts.users.values(), key=lambda account: account.uid)
    found_accounts = tuple(
        _account(account, accounts, executor, sudoers, logins.get(account.name)) for account in by_uid[:MAX_FOUND]
    )
    every_group = sorted(accounts.groups.values(), key=lambda group: group.gid)
    found_groups = tuple(
        FoundGroup(
            printable(group.name, 64),
            _id(group.gid),
            tuple(printable(member, 64) for member in group.members[:MAX_FOUND]),
            group.name in made,
        )
        for group in every_group[:MAX_FOUND]
    )
    complete = len(by_uid) <= MAX_FOUND and len(every_group) <= MAX_FOUND
    return _within(Discovery(now, found_accounts, found_groups, complete))


def privileges(state: State, accounts: Accounts, executor: Executor) -> tuple[tuple[Privilege, ...], tuple[Drift, ...]]:
    """Return the accounts other than root that have root privileges, with the reasons, and the drift of privileges.

    Two kinds of accounts are drift. The first is a managed account that has privileges although the desired state gives
    it none. The second is any other account that has privileges now, but had none at the agent's first check.
    """
    sudoers = read_sudoers(executor.files)
    before = executor.memory.now.privileged
    privileged: list[Privilege] = []
    drift: list[Drift] = []
    for account in sorted(accounts.users.values(), key=lambda each: each.uid):
        via = list(_reasons(account, accounts, sudoers))
        if not via or account.name == "root":
            continue
        managed = executor.memory.now.owns(accounts, account) is not None
        user = state.user(account.name) if managed else None
        wanted = user is not None and user.privileged
        name = printable(account.name, 64)
        privileged.append(Privilege(name, tuple(via[:64]), managed, wanted))
        if (managed and not wanted) or (not managed and before is not None and account.name not in before):
            drift.append(Drift(DriftKind.PRIVILEGE, name, "; ".join(via)[:300]))
    return tuple(privileged[:MAX_FOUND]), tuple(drift[:MAX_FOUND])


def remember_privileged(found_now: Iterable[Privilege], executor: Executor) -> None:
    """Store the privileged accounts that the agent found at its first check. Later checks are compared with them.
    Raises ConfigError."""
    memory = executor.memory.now
    if memory.privileged is None:
        names = tuple(each.name for each in found_now if not each.managed)
        executor.memory.change(replace(memory, privileged=names))


def _reasons(account: Account, accounts: Accounts, sudoers: Sudoers) -> Iterable[str]:
    """Yield the reasons why an account has root privileges. Yield nothing if the account has none."""
    if account.uid == 0:
        yield "uid 0"
    own = accounts.groups.values()
    groups = account.groups | {group.name for group in own if group.gid == account.gid}
    for name in sorted(groups & ROOT_GROUPS):
        yield printable(f"group {name}", 500)
    for rule in sudoers.of(account, accounts):
        yield printable(f"{rule.file}: {rule.text}", 500)
    if not sudoers.rules:
        # No sudoers rule could be read: assume the usual rules for these groups.
        for name in sorted(groups & SUDO_GROUPS):
            yield f"group {name}"


def _account(
    account: Account, accounts: Accounts, executor: Executor, sudoers: Sudoers, last_login: int | None
) -> FoundAccount:
    return FoundAccount(
        name=printable(account.name, 64),
        uid=_id(account.uid),
        gid=_id(account.gid),
        full_name=printable(account.full_name, 200),
        home=printable(account.home, 500),
        shell=printable(account.shell, 500),
        groups=tuple(printable(name, 64) for name in sorted(account.groups)[:256]),
        sudo=tuple(rule.text for rule in sudoers.of(account, accounts) if rule.file != FILE)[:64],
        keys=_keys(account, accounts, executor),
        last_login=last_login,
        expires=None if account.expires is None else min(account.expires, 2_932_896) * DAY,
        locked=account.password.startswith(("!", "*")),
        managed=executor.memory.now.owns(accounts, account) is not None,
    )


def _keys(account: Account, accounts: Accounts, executor: Executor) -> tuple[FoundKey, ...]:
    if accounts.is_system(account) and account.uid != 0:
        return ()
    try:
        there = executor.user_keys.read(account)
    except HostError:
        return ()
    lines = [(line, True) for line in there.managed] + [(line, False) for line in there.unknown]
    return tuple(found(line, managed=managed) for line, managed in lines[:_MAX_KEYS])


def _last_logins(files: Files, accounts: Accounts) -> Mapping[str, int]:
    """Return the time of each account's last login, in microseconds. Read the times from lastlog. If the host has no
    lastlog, read them from the last part of wtmp."""
    try:
        lastlog = files.records("/var/log/lastlog", _LASTLOG.size, {account.uid for account in accounts.users.values()})
        if lastlog is not None:
            return _from_lastlog(lastlog, accounts)
        return _from_wtmp(files.records("/var/log/wtmp", _UTMP.size, range(-_NEWEST_LOGINS, 0)) or {})
    except HostError:
        return {}


def _from_lastlog(records: Mapping[int, bytes], accounts: Accounts) -> Mapping[str, int]:
    logins = {}
    for account in accounts.users.values():
        seconds = _LASTLOG.unpack(records[account.uid])[0] if account.uid in records else 0
        if seconds > 0:
            logins[account.name] = seconds * SECOND
    return logins


def _from_wtmp(records: Mapping[int, bytes]) -> Mapping[str, int]:
    logins = {}
    for octets in records.values():
        record = _UTMP.unpack(octets)
        name = record[5].partition(b"\0")[0].decode("utf-8", "replace")
        seconds = record[10]
        if record[0] == _USER_PROCESS and seconds > 0:
            logins[name] = seconds * SECOND
    return logins


def _id(number: int) -> int:
    return min(number, 2**32 - 1)


def _within(discovery: Discovery) -> Discovery:
    """Return a discovery truncated to _MAX_OCTETS octets. The accounts and groups with the lowest ids are kept."""
    while len(dumps(discovery)) > _MAX_OCTETS:
        accounts, groups = discovery.accounts, discovery.groups
        kept = (accounts[: len(accounts) * 3 // 4], groups[: len(groups) * 3 // 4])
        discovery = replace(discovery, accounts=kept[0], groups=kept[1], complete=False)
    return discovery
