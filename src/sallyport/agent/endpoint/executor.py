"""Change a host, one change at a time, in its files and by its own programs. Each change is recorded before or after it
is made, so that after a crash the next run knows the state of the host."""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from sallyport.agent.endpoint.accounts import (
    EXPIRED,
    MANAGED_GROUP,
    Account,
    Accounts,
    expiry_day,
    read,
    subordinate_uids,
)
from sallyport.agent.endpoint.files import Files, Mode
from sallyport.agent.endpoint.keys import CommandKeys, UserKeys, for_command, printable
from sallyport.agent.endpoint.memory import Former, Kept, MemoryFile, digest
from sallyport.agent.endpoint.processes import NO_PROCESSES, Ids, Processes
from sallyport.agent.endpoint.sudoers import BITS, FILE, render
from sallyport.base.agentwire.fields import NO_PASSWORD
from sallyport.base.agentwire.state import DesiredGroup, DesiredUser
from sallyport.base.errors import HostError
from sallyport.base.text import counted

HANDED_OVER: Final = Mode(0o700)
"""A home whose account is gone belongs to root, so that the next account of that uid does not get it."""
LONGEST_S: Final = 90.0
"""shadow's programs wait 15 s for a lock; a home directory is copied in the rest."""
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
BUSY: Final = 8
"""Exit status of userdel: the account has processes."""
EXISTS: Final = 9
"""Exit status of useradd and groupadd: the name is in use, on the host or in a directory that it asks."""
_MEANINGS: Final = {
    1: "the file is locked or cannot be written",
    BUSY: "in use",
    EXISTS: "exists already",
    12: "no home",
}

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


class ToolError(HostError):
    """A program that did not do it. status: its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Tools:
    """shadow's programs and visudo, for the host whose root directory is `prefix`: they get argument lists, never a
    shell, a fixed environment, and a time limit."""

    def __init__(self, prefix: Path = Path("/")) -> None:
        self._prefix = () if prefix == Path("/") else ("--prefix", str(prefix))
        self._root = () if prefix == Path("/") else ("--root", str(prefix))

    def account(self, program: str, *arguments: str) -> None:
        """useradd, usermod, userdel, groupadd, groupmod, groupdel. ToolError."""
        self._run([program, *self._prefix, *arguments])

    def set_password(self, name: str, password_hash: str) -> None:
        """The hash of a password comes into force. It goes over standard input, not over the list of processes."""
        if any(each in name + password_hash for each in ":\n\r\0"):
            raise HostError("a name or a hash that would change another line")
        self._run(["chpasswd", "--encrypted", *self._root], f"{name}:{password_hash}\n".encode())

    def check_sudoers(self, content: bytes) -> None:
        """Whether sudo takes the file. ToolError: it does not; visudo is missing."""
        self._run(["visudo", "--check", "--quiet", "--file=-"], content)

    def _run(self, arguments: Sequence[str], stdin: bytes = b"") -> None:
        program = arguments[0]
        try:
            done = subprocess.run(  # noqa: S603  an argument list of checked names
                arguments, input=stdin, env=_ENVIRONMENT, cwd="/", capture_output=True, timeout=LONGEST_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"{program}: took longer than {LONGEST_S:.0f} s", -1) from None
        except OSError as error:
            raise ToolError(f"{program}: {error.strerror}", 127) from None
        if done.returncode != 0:
            raise ToolError(f"{program}: {_told(done.stderr, done.returncode)}", done.returncode)


class Executor:
    """Makes one change at a time. Each method raises HostError or ConfigError if the change was not made."""

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
        """Make an account with its home, closed to passwords."""
        accounts = read(self.files)
        before = self.memory.now
        own = before.of(user.name) or Kept(user.name)
        self.memory.keep(replace(own, made=True, making=True, granted=tuple(groups)))
        options = ["--no-log-init", "--create-home", "--password", NO_PASSWORD]
        options += ["--groups", ",".join((MANAGED_GROUP, *groups))]
        options += ["--gid", user.name] if user.name in accounts.groups else ["--user-group"]
        options += self._uid_options(user, accounts)
        options += ["--home-dir", user.home] if user.home else []
        options += ["--shell", user.shell] if user.shell else []
        day = expiry_day(user.expires)
        options += ["--expiredate", str(day)] if day is not None else []
        try:
            self._tools.account("useradd", *options, user.name)
        except ToolError as error:
            if error.status == EXISTS:  # a directory's, or made meanwhile: not the agent's
                self.memory.change(before)
            raise
        self._marked(user.name)
        self.give_home_back(user.name)

    def take_over(self, name: str, *, made: bool) -> None:
        """Put an existing account into the managed group. made: useradd made it in a pass that crashed."""
        account = self._account(name)
        kept = self.memory.now.of(name) or Kept(name)
        self.memory.keep(replace(kept, uid=account.uid, made=made, making=True))
        self._tools.account("usermod", "--groups", ",".join(sorted({*account.groups, MANAGED_GROUP})), name)
        self._marked(name)

    def change_user(self, name: str, arguments: Sequence[str], granted: Iterable[str]) -> None:
        """Groups, shell, home, expiry by usermod. granted: groups that it is in by the agent."""
        kept = self._kept(name)
        self.memory.keep(replace(kept, granted=tuple(sorted({*kept.granted, *granted}))))
        self._tools.account("usermod", *arguments, name)
        self.memory.keep(replace(kept, granted=tuple(sorted(granted))))

    def lock(self, name: str) -> None:
        """Close an account to passwords and keys."""
        self._tools.account("usermod", "--lock", "--expiredate", str(EXPIRED), name)

    def end_sessions(self, name: str) -> None:
        """End every process of a managed account. HostError: some are left, or another account has its uid."""
        accounts = read(self.files)
        account = self._own(name)
        if sharing := [each.name for each in accounts.users.values() if each.uid == account.uid and each.name != name]:
            raise HostError(f"uid {account.uid} is also the uid of {sharing[0]}: end the sessions by hand")
        self.processes.end(self.ids_of(account, accounts))

    def ids_of(self, account: Account, accounts: Accounts) -> Ids:
        """Return the uid of an account and its subordinate uids."""
        return Ids(account.uid, subordinate_uids(self.files, account, accounts))

    def hand_home_to_root(self, name: str) -> None:
        """Give the home directory of an account to root, before the account is deleted."""
        account = self._own(name)
        if self.files.belongs_to(account.home, account.uid):
            self.memory.former(name, Former(name, account.uid, printable(account.home, 512)))
            self.files.hand_over(account.home, of=account.uid, to=HANDED_OVER)

    def give_home_back(self, name: str) -> None:
        """Give the home directory that was handed to root to its account, which is there again."""
        account, former = self._own(name), self.memory.now.former_of(name)
        if former is None or former.uid != account.uid:
            return
        if former.home == account.home and self.files.belongs_to(account.home, self.files.owner):
            mode = Mode(HANDED_OVER.bits, account.uid, account.gid)
            self.files.hand_over(account.home, of=self.files.owner, to=mode)
        self.memory.former(name, None)

    def delete_user(self, name: str, *, home: bool) -> None:
        """Delete an account that the agent made. home: with its home directory.

        HostError: processes of the account run, which would outlive it.
        """
        account = self._own(name)
        if left := self.processes.of(self.ids_of(account, read(self.files))):
            raise HostError(
                f"{counted(len(left), 'process', 'processes')} of the account still running; it stays locked until then"
            )
        self._tools.account("userdel", *(("--remove",) if home else ()), name)
        self.forget(name)

    def forget(self, name: str) -> None:
        """Forget an account that is gone, but for its uid, which stays its own."""
        if self.options.keys == "command":
            self.command_keys.write(name, b"")
        kept = self.memory.now.of(name)
        if kept is not None and kept.made and kept.uid and self.memory.now.former_of(name) is None:
            self.memory.former(name, Former(name, kept.uid))
        self.memory.forget(name)

    # --- passwords, keys and sudo ---------------------------------------------------------------------------

    def set_password(self, name: str, wanted: str) -> None:
        """Put the hash in force that the state asks for."""
        self._own(name)
        self.put_password(name, wanted)
        self.memory.keep(replace(self._kept(name), wanted=digest(wanted), own=digest(wanted)))

    def put_password(self, name: str, wanted: str) -> None:
        """A hash comes into force, and is there when it is looked for."""
        self._tools.set_password(name, wanted)
        if self._account(name).password != wanted:
            raise HostError("the password is not in shadow(5) after it was set")

    def put_keys(self, name: str, keys: Sequence[str], expires: int | None, *, alone: bool) -> None:
        """Write the keys of an account to the place that the agent's file names. alone: remove others from its home."""
        account = self._own(name)
        if self.options.keys == "command":
            self.command_keys.write(name, for_command(keys, expires))
            keys = ()
        self.user_keys.write(account, keys, alone=alone)

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

    def _own(self, name: str) -> Account:
        """Return an account that is the agent's. HostError: it is gone or another's."""
        accounts = read(self.files)
        if not self._is_own(accounts, name):
            raise HostError("the account is not there any more, or not managed")
        return accounts.users[name]

    def _kept(self, name: str) -> Kept:
        kept = self.memory.now.of(name)
        if kept is None:
            raise HostError("the account is not managed")
        return kept

    def _is_own(self, accounts: Accounts, name: str) -> bool:
        account = accounts.users.get(name)
        return account is not None and self.memory.now.owns(accounts, account) is not None

    def _uid_options(self, user: DesiredUser, accounts: Accounts) -> list[str]:
        """Return useradd's options for the uid: the account's former one, or none that was another's.

        Files, cron and at jobs of a deleted account carry its uid; the next account must not own them.
        """
        taken = {account.uid for account in accounts.users.values()}
        former = self.memory.now.former_of(user.name)
        uid = former.uid if user.uid is None and former is not None and former.uid not in taken else user.uid
        if uid is not None:
            return ["--uid", str(uid)]
        lowest, highest = accounts.lowest_uid, accounts.highest_uid
        following = max((uid + 1 for uid in taken if lowest <= uid <= highest), default=lowest)  # useradd's choice
        deleted = {each.uid for each in self.memory.now.former}
        free = next((uid for uid in range(following, highest + 1) if uid not in deleted), following)
        return ["--key", f"UID_MIN={free}"] if free != following else []

    def _marked(self, name: str) -> None:
        account = self._account(name)
        self.memory.keep(replace(self._kept(name), uid=account.uid, making=False))


def _told(stderr: bytes, status: int) -> str:
    """The last line of what a program says, without what a terminal would obey."""
    lines = stderr.decode(errors="replace").strip().splitlines() or [_MEANINGS.get(status, "")]
    text = "".join(each if each.isprintable() else "?" for each in lines[-1])
    return f"{text[:300]} (status {status})"
