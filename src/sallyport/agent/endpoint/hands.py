"""What the agent does to a host: one change at a time, remembered before or after, so that a crash between any two of
them leaves something that the next run understands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from sallyport.agent.endpoint.accounts import EXPIRED, MANAGED_GROUP, Account, Accounts, expiry_day, read
from sallyport.agent.endpoint.files import Files, Mode
from sallyport.agent.endpoint.keys import CommandKeys, UserKeys, for_command
from sallyport.agent.endpoint.memory import Kept, MemoryFile, digest
from sallyport.agent.endpoint.processes import NO_PROCESSES, Processes
from sallyport.agent.endpoint.sudoers import BITS, FILE, render
from sallyport.agent.endpoint.tools import Tools
from sallyport.base.agentwire.fields import NO_PASSWORD
from sallyport.base.agentwire.state import DesiredGroup, DesiredUser
from sallyport.base.errors import HostError

HANDED_OVER: Final = Mode(0o700)
"""A home whose account is gone belongs to root, so that the next account of that uid does not get it."""


Keys: TypeAlias = Literal["file", "command", "off"]


@dataclass(frozen=True, slots=True)
class Options:
    """What the agent's file says of this host.

    keys: in authorized_keys (file), for an AuthorizedKeysCommand (command), or not managed (off). keys_dir: where the
    command finds them. protected: accounts that the agent leaves alone whatever the service says.
    """

    keys: Keys = "file"
    keys_dir: str = "/var/lib/sallyport-keys"
    protected: frozenset[str] = field(default_factory=frozenset)


class Hands:
    """The changes. Each raises HostError or ConfigError when it was not done."""

    def __init__(
        self,
        files: Files,
        tools: Tools,
        memory: MemoryFile,
        options: Options,
        processes: Processes = NO_PROCESSES,
    ) -> None:
        self.files = files
        self.memory = memory
        self.options = options
        self.processes = processes
        self.user_keys = UserKeys(files)
        self.command_keys = CommandKeys(files, options.keys_dir)
        self._tools = tools

    # --- groups -----------------------------------------------------------------------------------------------

    def make_group(self, group: DesiredGroup) -> None:
        """A group that is the agent's."""
        self.memory.group(group.name, made=True)
        gid = () if group.gid is None else ("--gid", str(group.gid))
        system = ("--system",) if group.name == MANAGED_GROUP else ()
        self._tools.account("groupadd", *system, *gid, group.name)

    def remove_group(self, name: str) -> None:
        """A group that the agent made."""
        if name in read(self.files).groups:
            self._tools.account("groupdel", name)
        self.memory.group(name, made=False)

    # --- accounts ---------------------------------------------------------------------------------------------

    def make_user(self, user: DesiredUser, groups: Sequence[str]) -> None:
        """An account with its home, closed to passwords."""
        uid = user.uid if user.uid is not None else self._former_uid(user.name)
        own = self.memory.now.of(user.name) or Kept(user.name)
        self.memory.keep(replace(own, made=True, making=True, granted=tuple(groups)))
        options = ["--no-log-init", "--create-home", "--password", NO_PASSWORD]
        options += ["--groups", ",".join((MANAGED_GROUP, *groups))]
        accounts = read(self.files)
        options += ["--gid", user.name] if user.name in accounts.groups else ["--user-group"]
        options += ["--uid", str(uid)] if uid is not None else []
        options += ["--home-dir", user.home] if user.home else []
        options += ["--shell", user.shell] if user.shell else []
        day = expiry_day(user.expires)
        options += ["--expiredate", str(day)] if day is not None else []
        self._tools.account("useradd", *options, user.name)
        self._came_back(user.name)
        self._marked(user.name)

    def take_over(self, name: str, *, made: bool) -> None:
        """An account that is there comes into the managed group. made: it is what is left of a useradd that crashed."""
        account = self._account(name)
        kept = self.memory.now.of(name) or Kept(name)
        self.memory.keep(replace(kept, uid=account.uid, made=made, making=True))
        self._tools.account("usermod", "--groups", ",".join(sorted({*account.groups, MANAGED_GROUP})), name)
        if made:
            self._came_back(name)
        self._marked(name)

    def change_user(self, name: str, arguments: Sequence[str], granted: Iterable[str]) -> None:
        """Groups, shell, home, expiry by usermod. granted: groups that it is in by the agent."""
        kept = self._kept(name)
        self.memory.keep(replace(kept, granted=tuple(sorted({*kept.granted, *granted}))))
        self._tools.account("usermod", *arguments, name)
        self.memory.keep(replace(kept, granted=tuple(sorted(granted))))

    def lock(self, name: str) -> None:
        """Neither a password nor a key opens the account from now on."""
        self._tools.account("usermod", "--lock", "--expiredate", str(EXPIRED), name)

    def end_sessions(self, name: str) -> None:
        """End every process of an account that is locked."""
        account = self._account(name)
        if account.locked:
            self.processes.end(account.uid)

    def delete_user(self, name: str, *, home: bool) -> None:
        """Remove an account that the agent made. home: with its home directory; else that is handed to root."""
        account = self._account(name)
        if not home:
            self.files.hand_over(account.home, of=account.uid, to=HANDED_OVER)
        self._tools.account("userdel", *(("--remove",) if home else ()), name)
        self.forget(name, uid=None if home else account.uid)

    def forget(self, name: str, *, uid: int | None) -> None:
        """An account that is not there any more."""
        if self.options.keys == "command":
            self.command_keys.write(name, b"")
        self.memory.forget(name, uid=uid)

    # --- what lets them in ------------------------------------------------------------------------------------

    def set_password(self, name: str, wanted: str) -> None:
        """The hash that the state asks for comes into force."""
        self.put_password(name, wanted)
        self.memory.keep(replace(self._kept(name), wanted=digest(wanted), own=digest(wanted)))

    def put_password(self, name: str, wanted: str) -> None:
        """A hash comes into force, and is there when it is looked for."""
        self._tools.set_password(name, wanted)
        if self._account(name).password != wanted:
            raise HostError("the password is not in shadow(5) after it was set")

    def put_keys(self, name: str, keys: Sequence[str], expires: int | None, *, alone: bool) -> None:
        """The keys of an account, where the agent's file says. alone: others are removed from its home."""
        if self.options.keys == "command":
            self.command_keys.write(name, for_command(keys, expires))
            keys = ()
        self.user_keys.write(self._account(name), keys, alone=alone)

    def put_sudoers(self, names: Iterable[str], *, without_password: bool) -> None:
        """The agent's file, with those of the names that are its accounts now, once visudo has taken it."""
        accounts = read(self.files)
        owned = [name for name in names if self._is_own(accounts, name)]
        content = render(owned, without_password=without_password)
        if content:
            self._tools.check_sudoers(content)
            self.files.replace(FILE, content, Mode(BITS))
        else:
            self.files.remove(FILE)
        self.memory.change(replace(self.memory.now, sudoers=digest(content.decode())))

    # --- helpers ----------------------------------------------------------------------------------------------

    def _account(self, name: str) -> Account:
        account = read(self.files).users.get(name)
        if account is None:
            raise HostError("the account is not there any more")
        return account

    def _kept(self, name: str) -> Kept:
        kept = self.memory.now.of(name)
        if kept is None:
            raise HostError("the account is not managed")
        return kept

    def _is_own(self, accounts: Accounts, name: str) -> bool:
        account = accounts.users.get(name)
        return account is not None and self.memory.now.owns(accounts, account) is not None

    def _former_uid(self, name: str) -> int | None:
        uid = self.memory.now.former_uid(name)
        taken = {account.uid for account in read(self.files).users.values()}
        return uid if uid not in taken else None

    def _came_back(self, name: str) -> None:
        """A home that was handed to root when the account was deleted is the account's again."""
        account = self._account(name)
        if self.memory.now.former_uid(name) != account.uid or not self.files.exists(account.home):
            return
        mode = Mode(HANDED_OVER.bits, account.uid, account.gid)
        self.files.hand_over(account.home, of=self.files.owner, to=mode)

    def _marked(self, name: str) -> None:
        account = self._account(name)
        self.memory.keep(replace(self._kept(name), uid=account.uid, making=False))
