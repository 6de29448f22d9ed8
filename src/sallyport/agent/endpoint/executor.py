"""The executor makes the changes on a host, one at a time. It writes the host's files, or runs the host's own programs
such as usermod. Each change is recorded in the agent's memory, so that the next pass knows the state of the host even
after a crash."""

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
from sallyport.agent.endpoint.memory import DeletedAccount, ManagedAccount, MemoryFile, digest
from sallyport.agent.endpoint.processes import NO_PROCESSES, Ids, Processes
from sallyport.agent.endpoint.sudoers import BITS, FILE, render
from sallyport.agentwire.fields import NO_PASSWORD
from sallyport.agentwire.state import DesiredGroup, DesiredUser
from sallyport.base.errors import HostError
from sallyport.base.text import counted

HANDED_OVER: Final = Mode(0o700)
"""Mode of the home directory of a deleted account. The agent also gives the directory to root, so that a later account
with the same uid does not own it."""
MAX_S: Final = 90.0
"""Time limit of a program, in seconds. The programs of the shadow package wait up to 15 s for a lock. The remaining
time is needed to move a home directory."""
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
BUSY: Final = 8
"""Exit status of userdel if the account has processes."""
EXISTS: Final = 9
"""Exit status of useradd and groupadd if the name is in use on the host, or in a directory that the host queries."""
_MEANINGS: Final = {
    1: "the file is locked or cannot be written",
    BUSY: "in use",
    EXISTS: "exists already",
    12: "no home",
}

Keys: TypeAlias = Literal["file", "command", "off"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options for this host in the agent's configuration file.

    keys: where the agent writes SSH keys. `file`: into authorized_keys. `command`: into files that an
    AuthorizedKeysCommand reads. `off`: nowhere, because the agent does not manage SSH keys. keys_dir: the directory of
    the files for the AuthorizedKeysCommand. protected: the names of accounts that the agent never changes, even if the
    desired state contains them.
    """

    keys: Keys = "file"
    keys_dir: str = "/var/lib/sallyport-keys"
    protected: frozenset[str] = field(default_factory=frozenset)


class ToolError(HostError):
    """Raised if a program fails. status: the exit status of the program."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Tools:
    """The program visudo and the programs of the shadow package, such as useradd. The programs run without a shell,
    with argument lists, a fixed environment, and a time limit. prefix: the root directory of the host."""

    def __init__(self, prefix: Path = Path("/")) -> None:
        self._prefix = () if prefix == Path("/") else ("--prefix", str(prefix))
        self._root = () if prefix == Path("/") else ("--root", str(prefix))

    def account(self, program: str, *arguments: str) -> None:
        """Run useradd, usermod, userdel, groupadd, groupmod or groupdel. Raises ToolError."""
        self._run([program, *self._prefix, *arguments])

    def set_password(self, name: str, password_hash: str) -> None:
        """Set the password hash of an account. The hash is passed over standard input, so that ps(1) does not show it.

        Raises HostError.
        """
        if any(each in name + password_hash for each in ":\n\r\0"):
            raise HostError("the name or the hash has a character that would change another line of shadow(5)")
        self._run(["chpasswd", "--encrypted", *self._root], f"{name}:{password_hash}\n".encode())

    def check_sudoers(self, content: bytes) -> None:
        """Check that sudo accepts the content of a sudoers file. Raises ToolError if sudo does not accept it, or if
        visudo is missing."""
        self._run(["visudo", "--check", "--quiet", "--file=-"], content)

    def _run(self, arguments: Sequence[str], stdin: bytes = b"") -> None:
        program = arguments[0]
        try:
            done = subprocess.run(  # noqa: S603  an argument list of checked names
                arguments, input=stdin, env=_ENVIRONMENT, cwd="/", capture_output=True, timeout=MAX_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"{program}: took longer than {MAX_S:.0f} s", -1) from None
        except OSError as error:
            raise ToolError(f"{program}: {error.strerror}", 127) from None
        if done.returncode != 0:
            raise ToolError(f"{program}: {_last_line(done.stderr, done.returncode)}", done.returncode)


class Executor:
    """Makes the changes on a host, one at a time. Each method raises HostError or ConfigError if the change could not
    be made."""

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
        """Create a group that belongs to the agent."""
        self.memory.group(group.name, made=True)
        gid = () if group.gid is None else ("--gid", str(group.gid))
        system = ("--system",) if group.name == MANAGED_GROUP else ()
        self._tools.account("groupadd", *system, *gid, group.name)

    def remove_group(self, name: str) -> None:
        """Remove a group that the agent has created."""
        if name in read(self.files).groups:
            self._tools.account("groupdel", name)
        self.memory.group(name, made=False)

    # --- accounts ---------------------------------------------------------------------------------------------

    def make_user(self, user: DesiredUser, groups: Sequence[str]) -> None:
        """Create an account with its home directory. The new account accepts no password yet."""
        accounts = read(self.files)
        before = self.memory.now
        own = before.of(user.name) or ManagedAccount(user.name)
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
            if error.status == EXISTS:  # the name is a directory's account, or was created meanwhile
                self.memory.change(before)
            raise
        self._marked(user.name)
        self.give_home_back(user.name)

    def take_over(self, name: str, *, made: bool) -> None:
        """Put an existing account into the group of managed accounts. made: True if the agent itself created the
        account, but crashed before it put the account into the group."""
        account = self._account(name)
        kept = self.memory.now.of(name) or ManagedAccount(name)
        self.memory.keep(replace(kept, uid=account.uid, made=made, making=True))
        self._tools.account("usermod", "--groups", ",".join(sorted({*account.groups, MANAGED_GROUP})), name)
        self._marked(name)

    def change_user(self, name: str, arguments: Sequence[str], granted: Iterable[str]) -> None:
        """Change the groups, shell, home or expiry of an account with usermod. arguments: the arguments for usermod.
        granted: the groups of the changed account that the account has from the agent, and not from an admin."""
        kept = self._kept(name)
        self.memory.keep(replace(kept, granted=tuple(sorted({*kept.granted, *granted}))))
        self._tools.account("usermod", *arguments, name)
        self.memory.keep(replace(kept, granted=tuple(sorted(granted))))

    def lock(self, name: str) -> None:
        """Lock an account, so that it accepts neither passwords nor SSH keys."""
        self._tools.account("usermod", "--lock", "--expiredate", str(EXPIRED), name)

    def end_sessions(self, name: str) -> None:
        """End every process of a managed account. Raises HostError if processes are still running, or if another
        account has the same uid."""
        accounts = read(self.files)
        account = self._own(name)
        if sharing := [each.name for each in accounts.users.values() if each.uid == account.uid and each.name != name]:
            raise HostError(f"uid {account.uid} is also the uid of {sharing[0]}: end the sessions by hand")
        self.processes.end(self.ids_of(account, accounts))

    def ids_of(self, account: Account, accounts: Accounts) -> Ids:
        """Return the uid of an account and its subordinate uids."""
        return Ids(account.uid, subordinate_uids(self.files, account, accounts))

    def hand_home_to_root(self, name: str) -> None:
        """Make root the owner of an account's home directory. Call this before the account is deleted."""
        account = self._own(name)
        if self.files.belongs_to(account.home, account.uid):
            self.memory.former(name, DeletedAccount(name, account.uid, printable(account.home, 512)))
            self.files.hand_over(account.home, of=account.uid, to=HANDED_OVER)

    def give_home_back(self, name: str) -> None:
        """Make an account the owner of its old home directory again. This is necessary if an account with the same name
        was deleted before, because root then owns the directory."""
        account, former = self._own(name), self.memory.now.former_of(name)
        if former is None or former.uid != account.uid:
            return
        if former.home == account.home and self.files.belongs_to(account.home, self.files.owner):
            mode = Mode(HANDED_OVER.bits, account.uid, account.gid)
            self.files.hand_over(account.home, of=self.files.owner, to=mode)
        self.memory.former(name, None)

    def delete_user(self, name: str, *, home: bool) -> None:
        """Delete an account that the agent has created. home: whether to delete its home directory as well.

        Raises HostError if processes of the account are still running, because they would continue to run after the
        deletion.
        """
        account = self._own(name)
        if left := self.processes.of(self.ids_of(account, read(self.files))):
            raise HostError(
                f"{counted(len(left), 'process of the account is', 'processes of the account are')} still running; "
                "the account stays locked until the next attempt"
            )
        self._tools.account("userdel", *(("--remove",) if home else ()), name)
        self.forget(name)

    def forget(self, name: str) -> None:
        """Delete the entry of an account in the agent's memory, because the account does not exist any more. Its uid
        remains reserved for an account with the same name."""
        if self.options.keys == "command":
            self.command_keys.write(name, b"")
        kept = self.memory.now.of(name)
        if kept is not None and kept.made and kept.uid and self.memory.now.former_of(name) is None:
            self.memory.former(name, DeletedAccount(name, kept.uid))
        self.memory.forget(name)

    # --- passwords, keys and sudo ---------------------------------------------------------------------------

    def set_password(self, name: str, wanted: str) -> None:
        """Set the password hash of an account to the hash in the desired state."""
        self._own(name)
        self.put_password(name, wanted)
        self.memory.keep(replace(self._kept(name), wanted=digest(wanted), own=digest(wanted)))

    def put_password(self, name: str, wanted: str) -> None:
        """Set the password hash of an account, and check that shadow(5) contains it."""
        self._tools.set_password(name, wanted)
        if self._account(name).password != wanted:
            raise HostError("the password was set, but shadow(5) does not contain it")

    def put_keys(self, name: str, keys: Sequence[str], expires: int | None, *, alone: bool) -> None:
        """Write the SSH keys of an account to the place that `Options.keys` selects. expires: the time at which the
        account expires, in microseconds, or None. alone: whether to remove all other keys from the account's home
        directory."""
        account = self._own(name)
        if self.options.keys == "command":
            self.command_keys.write(name, for_command(keys, expires))
            keys = ()
        self.user_keys.write(account, keys, alone=alone)

    def put_sudoers(self, names: Iterable[str], *, without_password: bool) -> None:
        """Write the agent's sudoers file after visudo has accepted it.

        names: the users that get root privileges. A name is left out if the agent does not manage an account with this
        name.
        """
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
            raise HostError("the account does not exist any more")
        return account

    def _own(self, name: str) -> Account:
        """Return an account that the agent manages. Raises HostError if the account does not exist, or if the agent
        does not manage it."""
        accounts = read(self.files)
        if not self._is_own(accounts, name):
            raise HostError("the account does not exist any more, or is not managed")
        return accounts.users[name]

    def _kept(self, name: str) -> ManagedAccount:
        kept = self.memory.now.of(name)
        if kept is None:
            raise HostError("the account is not managed")
        return kept

    def _is_own(self, accounts: Accounts, name: str) -> bool:
        account = accounts.users.get(name)
        return account is not None and self.memory.now.owns(accounts, account) is not None

    def _uid_options(self, user: DesiredUser, accounts: Accounts) -> list[str]:
        """Return the options for useradd that select the uid of a new account: either the uid of a deleted account with
        the same name, or a uid that no deleted account had.

        The files, cron jobs and at jobs of a deleted account still have its uid. They must not become those of an
        account with another name.
        """
        taken = {account.uid for account in accounts.users.values()}
        former = self.memory.now.former_of(user.name)
        uid = former.uid if user.uid is None and former is not None and former.uid not in taken else user.uid
        if uid is not None:
            return ["--uid", str(uid)]
        lowest, highest = accounts.lowest_uid, accounts.highest_uid
        # The uid that useradd would choose by itself.
        following = max((uid + 1 for uid in taken if lowest <= uid <= highest), default=lowest)
        deleted = {each.uid for each in self.memory.now.former}
        free = next((uid for uid in range(following, highest + 1) if uid not in deleted), following)
        return ["--key", f"UID_MIN={free}"] if free != following else []

    def _marked(self, name: str) -> None:
        account = self._account(name)
        self.memory.keep(replace(self._kept(name), uid=account.uid, making=False))


def _last_line(stderr: bytes, status: int) -> str:
    """Return the last line of a program's error output and its exit status. Non-printable characters are replaced,
    because a terminal may interpret them as commands."""
    lines = stderr.decode(errors="replace").strip().splitlines() or [_MEANINGS.get(status, "")]
    text = "".join(each if each.isprintable() else "?" for each in lines[-1])
    return f"{text[:300]} (status {status})"
