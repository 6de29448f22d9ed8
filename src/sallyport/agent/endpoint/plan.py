"""The steps that bring the accounts of the host to the desired state. A pass executes the steps; `--dry-run` shows
them.

Steps that remove access come first. The first step removes users from the sudoers file. Then the accounts follow that
have expired or are no longer in the state: each is locked, its sessions are ended, its keys are removed, and it may be
deleted. After that, the steps follow that grant access.

No step relies on the success of an earlier step, because each step checks its own conditions. Each pass makes a new
plan. So if a pass crashes at any step, the next pass does what is still missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from sallyport.agent.endpoint.accounts import MANAGED_GROUP, Account, Accounts
from sallyport.agent.endpoint.change import SUDO_GROUPS, change
from sallyport.agent.endpoint.executor import Executor
from sallyport.agent.endpoint.keys import KeyFile, for_command, found, printable
from sallyport.agent.endpoint.memory import ANYBODY, ManagedAccount, Memory, digest
from sallyport.agent.endpoint.processes import Process
from sallyport.agent.endpoint.sudoers import FILE, ROOT_GROUPS, named, render
from sallyport.agentwire.report import Action, Drift, DriftKind
from sallyport.agentwire.state import DesiredGroup, DesiredUser, Removal, State
from sallyport.base.errors import HostError
from sallyport.base.text import counted

_SYSTEM_HOMES: Final = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr"}
)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One change of the host. sign: `+` (add), `~` (change) or `-` (remove). kind, name, detail: the description of the
    change for reports. do: the function that makes the change."""

    sign: str
    kind: str
    name: str
    detail: str
    do: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one pass. refused: the parts of the desired state that the agent does not apply, with the reasons."""

    steps: tuple[PlanStep, ...]
    refused: tuple[Action, ...]
    drift: tuple[Drift, ...]


def plan(state: State, accounts: Accounts, executor: Executor, now: int, *, rotating: str = "") -> Plan:
    """Return the changes that bring the host to the desired state.

    now: the estimated time of the service, in microseconds. rotating: the user whose password is being rotated; the
    plan does not change this password. If it is ANYBODY, the plan changes no password.
    """
    planner = _Planner(state, accounts, executor, now, rotating)
    steps = tuple(planner.steps())
    return Plan(steps, tuple(planner.refused), tuple(planner.drift))


class _Planner:
    def __init__(self, state: State, accounts: Accounts, executor: Executor, now: int, rotating: str) -> None:
        self._state = state
        self._settings = state.settings
        self._accounts = accounts
        self._executor = executor
        self._memory: Memory = executor.memory.now
        self._now = now
        self._rotating = rotating
        self._found_processes: list[Process] | None = None
        self.refused: list[Action] = []
        self.drift: list[Drift] = []

    def steps(self) -> Iterator[PlanStep]:
        """Yield all steps in the order of their execution."""
        named_by_state = {user.name for user in self._state.users}
        users = [user for user in self._state.users if self._accepts(user)]
        active = {user.name for user in users if user.expires is None or user.expires > self._now}
        privileged = {user.name for user in users if user.privileged and user.name in active}
        content = self._executor.files.read(FILE, most=1_000_000) or b""
        yield from self._sudoers_less(content, privileged)
        expired = (step for user in users if user.name not in active for step in self._expired(user))
        leaving = (
            step for kept in self._memory.kept if kept.name not in named_by_state for step in self._leaving(kept)
        )
        # All accounts are locked before the first session is ended, because it takes time to end sessions.
        yield from sorted([*expired, *leaving], key=lambda step: step.kind not in {"take-over", "lock"})
        yield from self._groups_to_make(users)
        for user in users:
            if user.name in active:
                yield from self._active(user)
        yield from self._sudoers_more(content, privileged)
        yield from self._groups_to_remove(users)

    # --- accepted users ---------------------------------------------------------------------------------------

    def _accepts(self, user: DesiredUser) -> bool:
        account = self._accounts.users.get(user.name)
        reason = self._refusal(user, account) or (
            self._refusal_to_make(user) if account is None else self._refusal_to_change(user, account)
        )
        if reason:
            self.refused.append(Action("refuse", user.name, error=reason))
        return not reason

    def _refusal(self, user: DesiredUser, account: Account | None) -> str:
        """Return the reason why the agent must not apply a user in the state, or an empty text if there is none. This
        method checks only reasons that apply to new accounts and to existing accounts."""
        if user.name in self._executor.options.protected:
            return "the account is protected in the agent's configuration file"
        is_new = user.home and (account is None or account.home != user.home)
        if is_new and user.home.split("/")[1] in _SYSTEM_HOMES:
            return "the home directory would be a system directory"
        return ""

    def _refusal_to_make(self, user: DesiredUser) -> str:
        """Return the reason not to create an account, or an empty text if there is none."""
        if user.uid is not None and user.uid < self._accounts.lowest_uid:
            return "the uid is reserved for system accounts"
        if user.uid is not None and any(other.uid == user.uid for other in self._accounts.users.values()):
            return "another account has the same uid"
        group = self._accounts.groups.get(user.name)  # the account's own group
        if group is not None and (self._comes_with_rights(group.name) or set(group.members) - {user.name}):
            return "a group with this name exists, and does not belong to the account"
        return ""

    def _refusal_to_change(self, user: DesiredUser, account: Account) -> str:
        """Return the reason not to change an existing account. Return an empty text if the account belongs to the
        agent, or if the agent may take the account over."""
        if self._accounts.is_system(account):
            return "the account is a system account"
        if self._memory.owns(self._accounts, account) is None and not self._may_take_over(user.name):
            return "the account exists already, and the state does not let the agent take it over"
        if user.uid not in {None, account.uid}:
            self.drift.append(Drift(DriftKind.ACCOUNT, user.name, f"its uid is {account.uid}, not {user.uid}"))
        return ""

    def _may_take_over(self, name: str) -> bool:
        """Return whether the agent may take over an account. This is the case if the state allows the take-over. It is
        also the case if the account is in the managed group, but the agent's memory does not contain it."""
        return name in self._state.takeover or (self._memory.of(name) is None and self._accounts.in_managed_group(name))

    def _groups_of(self, user: DesiredUser) -> list[str]:
        """Return the groups that a user gets. Only a privileged user gets system groups."""
        allowed = []
        for name in user.groups:
            if name == MANAGED_GROUP or (self._comes_with_rights(name) and not user.privileged):
                self.refused.append(Action("refuse", user.name, f"group {name}", "a system group"))
            else:
                allowed.append(name)
        return allowed

    def _comes_with_rights(self, name: str) -> bool:
        """Return whether a group is a system group, or gives its members root privileges."""
        group = self._accounts.groups.get(name)
        system = group is not None and group.gid < self._accounts.lowest_gid and name not in self._memory.groups
        return system or name in ROOT_GROUPS | SUDO_GROUPS

    # --- removal of access ------------------------------------------------------------------------------------

    def _sudoers_less(self, content: bytes, privileged: set[str]) -> Iterator[PlanStep]:
        there = named(content)
        remaining = there & privileged
        without = self._settings.sudo_without_password
        if digest(content.decode("utf-8", "replace")) != self._memory.sudoers and self._memory.sudoers:
            self.drift.append(Drift(DriftKind.SUDOERS, "", f"{FILE} was changed, but not by the agent", put_back=True))
        if content != render(remaining, without_password=without):
            detail = " ".join(f"-{name}" for name in sorted(there - remaining)) or "restored"
            yield self._step("~", "sudoers", "", detail, self._put_sudoers(remaining))

    def _expired(self, user: DesiredUser) -> Iterator[PlanStep]:
        account = self._accounts.users.get(user.name)
        if account is None:
            return
        yield from self._take_over(user, account)
        yield from self._locked(account, "expired")

    def _leaving(self, kept: ManagedAccount) -> Iterator[PlanStep]:
        account = self._accounts.users.get(kept.name)
        delete = kept.made and self._settings.removal is Removal.DELETE
        if account is None:
            yield self._step("-", "forget", kept.name, "not there", partial(self._executor.forget, kept.name))
        elif self._memory.owns(self._accounts, account) is None:
            detail = "no longer in the managed group; the agent does not change the account"
            self.drift.append(Drift(DriftKind.ACCOUNT, kept.name, detail))
        elif self._accounts.is_system(account) or kept.name in self._executor.options.protected:
            self.refused.append(Action("refuse", kept.name, error="a protected account; the agent does not change it"))
        else:
            yield from self._locked(account, "no longer in the desired state")
            if delete:
                home = self._settings.remove_homes
                if not home:
                    do = partial(self._executor.hand_home_to_root, kept.name)
                    yield self._step("-", "home", kept.name, f"{account.home} to root", do)
                detail = f"uid {account.uid}, home {account.home} {'removed' if home else 'kept'}"
                do = partial(self._executor.delete_user, kept.name, home=home)
                yield self._step("-", "delete", kept.name, detail, do)

    def _locked(self, account: Account, why: str) -> Iterator[PlanStep]:
        """Yield the steps that lock an account, end its sessions, and remove its keys. The sessions must end first,
        before the step that writes a file in the account's home directory."""
        if not account.locked:
            yield self._step("-", "lock", account.name, why, partial(self._executor.lock, account.name))
        if self._settings.end_sessions:
            ids = self._executor.ids_of(account, self._accounts)
            count = sum(ids.own(process) for process in self._processes())
            if count or not account.locked:  # a login may begin until the lock is set
                do = partial(self._executor.end_sessions, account.name)
                yield self._step("-", "sessions", account.name, counted(count, "process", "processes"), do)
        if account.locked:
            yield from self._keys(account, (), None)
        elif self._executor.options.keys != "off":  # do not read a home while its user may be logged in
            yield self._keys_step(account.name, (), None, "")

    def _processes(self) -> list[Process]:
        """Return the processes of the host. They are read once for each plan."""
        if self._found_processes is None:
            self._found_processes = self._executor.processes.all()
        return self._found_processes

    # --- grant of access --------------------------------------------------------------------------------------

    def _groups_to_make(self, users: list[DesiredUser]) -> Iterator[PlanStep]:
        wanted = {name: DesiredGroup(name) for user in users for name in user.groups}
        wanted |= {group.name: group for group in self._state.groups}
        wanted[MANAGED_GROUP] = DesiredGroup(MANAGED_GROUP)
        given = {name for user in users if user.privileged for name in user.groups}
        # Do not create such a group: a package that is installed later would give root privileges to its members.
        withheld = (ROOT_GROUPS | SUDO_GROUPS) - given
        for name in sorted(wanted.keys() - self._accounts.groups.keys() - withheld):
            if name not in self._accounts.users or name == MANAGED_GROUP:
                gid = wanted[name].gid
                detail = "" if gid is None else f"gid {gid}"
                yield self._step("+", "group", name, detail, partial(self._executor.make_group, wanted[name]))

    def _active(self, user: DesiredUser) -> Iterator[PlanStep]:
        account = self._accounts.users.get(user.name)
        groups = self._groups_of(user)
        if account is None:
            detail = " ".join(("groups", *groups)) if groups else ""
            yield self._step("+", "create", user.name, detail, partial(self._executor.make_user, user, groups))
            if user.ssh_keys and self._executor.options.keys != "off":
                yield self._keys_step(user.name, user.ssh_keys, user.expires, f"+{len(user.ssh_keys)}")
            if user.password_hash:
                yield self._password_step(user)
            return
        yield from self._take_over(user, account)
        former = self._memory.former_of(user.name)
        if former is not None and former.uid == account.uid:
            yield self._step("+", "home", user.name, account.home, partial(self._executor.give_home_back, user.name))
        kept = self._memory.of(user.name) or ManagedAccount(user.name)
        wanted = change(user, account, kept, groups, self._accounts, self._memory, self._settings)
        self.drift += wanted.drift
        if wanted.arguments:
            do = partial(self._executor.change_user, user.name, wanted.arguments, wanted.granted)
            yield self._step("~", "change", user.name, wanted.detail, do)
        yield from self._password(user, account, kept)
        yield from self._keys(account, user.ssh_keys, user.expires)

    def _take_over(self, user: DesiredUser, account: Account) -> Iterator[PlanStep]:
        """Yield the step that takes an account over. If a crash interrupted the creation of the account, this step
        completes the creation."""
        kept = self._memory.owns(self._accounts, account)
        if kept is None or kept.making:
            made = kept is not None and kept.made
            detail = "completed after an interrupted useradd" if made else "was there before"
            yield self._step(
                "~", "take-over", user.name, detail, partial(self._executor.take_over, user.name, made=made)
            )

    def _password(self, user: DesiredUser, account: Account, kept: ManagedAccount) -> Iterator[PlanStep]:
        if self._rotating in {user.name, ANYBODY}:
            return
        if kept.own and digest(account.password.removeprefix("!")) != kept.own:
            self.drift.append(Drift(DriftKind.PASSWORD, user.name, "changed, but not by the agent"))
        if user.password_hash and digest(user.password_hash) not in {kept.wanted, kept.own}:
            yield self._password_step(user)

    def _password_step(self, user: DesiredUser) -> PlanStep:
        do = partial(self._executor.set_password, user.name, user.password_hash)
        return self._step("~", "password", user.name, "set to the password that the service has", do)

    def _keys(self, account: Account, keys: tuple[str, ...], expires: int | None) -> Iterator[PlanStep]:
        if self._executor.options.keys == "off":
            return
        alone = self._settings.remove_unknown_keys
        in_file = self._executor.options.keys == "file"
        try:
            there = self._executor.user_keys.read(account)
        except HostError as error:
            reason = printable(str(error), 300)
            if alone:
                self.drift.append(Drift(DriftKind.KEY, account.name, reason, put_back=True))
            else:
                self.refused.append(Action("keys", account.name, "authorized_keys", reason))
                if in_file:
                    return
            there = KeyFile((), (), is_whole=not alone)
        for line in there.unknown[:20]:
            key = found(line, managed=False)
            detail = f"{key.type} {key.fingerprint} {key.comment}"[:300]
            self.drift.append(Drift(DriftKind.KEY, account.name, detail, put_back=alone))
        current, in_home = there.managed, keys
        if not in_file:
            octets = self._executor.command_keys.read(account.name)
            current = keys if octets == for_command(keys, expires) else ("?",)
            in_home = ()
        is_cut = (not there.is_whole and (alone or in_file)) or (not there.second_is_whole and alone)
        if current != keys or there.managed != in_home or (alone and there.unknown) or is_cut:
            parts = [_difference(current, keys)]
            parts += [f"-{len(there.unknown)} unknown"] if alone and there.unknown else []
            parts += ["replaces a file that cannot be read as a whole"] if is_cut else []
            yield self._keys_step(account.name, keys, expires, " ".join(parts))

    def _keys_step(self, name: str, keys: tuple[str, ...], expires: int | None, detail: str) -> PlanStep:
        alone = self._settings.remove_unknown_keys
        return self._step("~", "keys", name, detail, partial(self._executor.put_keys, name, keys, expires, alone=alone))

    def _sudoers_more(self, content: bytes, privileged: set[str]) -> Iterator[PlanStep]:
        if new := privileged - named(content):
            detail = " ".join(f"+{name}" for name in sorted(new))
            yield self._step("~", "sudoers", "", detail, self._put_sudoers(privileged))

    def _put_sudoers(self, names: set[str]) -> Callable[[], None]:
        without = self._settings.sudo_without_password
        return partial(self._executor.put_sudoers, sorted(names), without_password=without)

    def _groups_to_remove(self, users: list[DesiredUser]) -> Iterator[PlanStep]:
        wanted = {group.name for group in self._state.groups} | {name for user in users for name in user.groups}
        for name in self._memory.groups:
            if name not in wanted and name != MANAGED_GROUP:
                yield self._step("-", "group", name, "", partial(self._executor.remove_group, name))

    def _step(self, sign: str, kind: str, name: str, detail: str, do: Callable[[], None]) -> PlanStep:
        return PlanStep(sign, kind, name, detail, do)


def _difference(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    added, removed = len(set(after) - set(before)), len(set(before) - set(after))
    return " ".join(filter(None, (f"+{added}" if added else "", f"-{removed}" if removed else ""))) or "in order"
