"""Writes the agent's own sudoers file, and reads all other rules that give root privileges (sudoers(5)).

The agent writes its own file after visudo has accepted the content. It reads the files of admins, but never writes
them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sallyport.agent.endpoint.accounts import Account, Accounts, LocalGroup
from sallyport.agent.endpoint.files import Files
from sallyport.agent.endpoint.keys import printable
from sallyport.base.errors import HostError

FILE: Final = "/etc/sudoers.d/sallyport"
BITS: Final = 0o440
ROOT_GROUPS: Final = frozenset({"root", "disk", "shadow", "docker", "lxd", "incus", "incus-admin", "libvirt"})
"""Groups whose members can become root without sudo."""
_HEAD: Final = "# Written by sallyport agent endpoint; changes are overwritten.\n"
_MAX_DEPTH: Final = 8
_MAX_FILES: Final = 500
_ALIAS: Final = re.compile(r"User_Alias\s+(.*)")
_INCLUDE: Final = re.compile(r"[@#](include|includedir)\s+(\S+)")
_NO_RULE: Final = re.compile(r"(?:Defaults|Host_Alias|Cmnd_Alias|Cmd_Alias|Runas_Alias)\b")


@dataclass(frozen=True, slots=True)
class Rule:
    """A sudoers rule that grants privileges. who: the users to which the rule applies, given as user names, %groups,
    #uids, aliases or ALL. text: the line, shortened for reports. file: the path of the file that contains the rule."""

    who: tuple[str, ...]
    text: str
    file: str

    def holds_for(self, account: Account, accounts: Accounts, aliases: dict[str, tuple[str, ...]]) -> bool:
        """Return whether the rule applies to an account.

        The result may be True for an account that the rule excludes, because negated names and negated aliases are
        ignored. A report should contain a rule too many rather than a rule too few.
        """
        return any(_is(who, account, accounts, aliases) for who in self.who)


@dataclass(frozen=True, slots=True)
class Sudoers:
    """All sudoers rules of a host."""

    rules: tuple[Rule, ...]
    aliases: dict[str, tuple[str, ...]]

    def of(self, account: Account, accounts: Accounts) -> list[Rule]:
        """Return the rules that apply to an account."""
        return [rule for rule in self.rules if rule.holds_for(account, accounts, self.aliases)]


def render(names: Iterable[str], *, without_password: bool) -> bytes:
    """Return the content of the agent's sudoers file. The file allows the users in `names` to run every command as
    every user. If `names` is empty, the content is empty."""
    tag = "NOPASSWD: " if without_password else ""
    lines = [f"{name} ALL=(ALL:ALL) {tag}ALL\n" for name in sorted(names)]
    return (_HEAD + "".join(lines)).encode() if lines else b""


def named(content: bytes) -> set[str]:
    """Return the names of the users in the content of the agent's sudoers file."""
    lines = content.decode("utf-8", "replace").splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def read(files: Files) -> Sudoers:
    """Return the rules of /etc/sudoers and of the files that it includes."""
    rules: list[Rule] = []
    aliases: dict[str, tuple[str, ...]] = {}
    for line, file in _lines(files, "/etc/sudoers", set()):
        if alias := _ALIAS.fullmatch(line):
            aliases |= dict(_aliases(alias[1]))
        elif "=" in line and not _NO_RULE.match(line):
            who, text = _who(line)
            rules.append(Rule(who, printable(" ".join(text.split()), 300), file))
    return Sudoers(tuple(rules), aliases)


def _lines(files: Files, path: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield (line, path) for the lines of a file and of the files that it includes. Continued lines are joined.

    seen: the paths of the files that were read already. Each file is read only once. A file that cannot be read has no
    lines.
    """
    try:
        octets = None if path in seen or len(seen) > _MAX_FILES else files.read(path, most=1_000_000)
    except HostError:
        return
    seen.add(path)
    for line in re.sub(r"\\\n", " ", (octets or b"").decode("utf-8", "replace")).splitlines():
        text = line.strip()
        if include := _INCLUDE.fullmatch(text):
            yield from _included(files, include[1], include[2], path, seen)
        # `#` begins a comment, but `#1000` is a user id.
        elif text and not re.match(r"#(?!\d)", text):
            yield re.sub(r"\s#(?!\d).*", "", text), path


def _included(files: Files, how: str, target: str, of: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    path = target.strip('"') if target.strip('"').startswith("/") else f"{of.rpartition('/')[0]}/{target}"
    if how == "include":
        yield from _lines(files, path, seen)
        return
    for name in files.names(path):
        if "." not in name and not name.endswith("~"):
            yield from _lines(files, f"{path}/{name}", seen)


def _who(line: str) -> tuple[tuple[str, ...], str]:
    """Return the users to which a line applies, and the line itself. The last word before the first `=` is not a user,
    but the host."""
    left = re.sub(r"\s*,\s*", ",", line.partition("=")[0]).split()
    return tuple(name.strip('"') for name in ",".join(left[:-1] or left).split(",")), line


def _aliases(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for definition in text.split(":"):
        name, _, members = definition.partition("=")
        yield name.strip(), tuple(member.strip() for member in members.split(","))


def _is(who: str, account: Account, accounts: Accounts, aliases: dict[str, tuple[str, ...]], depth: int = 0) -> bool:
    if who in {"ALL", account.name, f"#{account.uid}"}:
        return True
    if who.startswith("%"):
        return any(who in {f"%{group.name}", f"%#{group.gid}"} for group in _groups(account, accounts))
    members = aliases.get(who, ())
    return depth < _MAX_DEPTH and any(_is(member, account, accounts, aliases, depth + 1) for member in members)


def _groups(account: Account, accounts: Accounts) -> Iterator[LocalGroup]:
    for group in accounts.groups.values():
        if group.gid == account.gid or group.name in account.groups:
            yield group
