"""Small parts of the agent: generated passwords, sudo rights, discovery, the clock, files and the memory file."""

import os
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.agent.endpoint.accounts import read
from sallyport.agent.endpoint.discovery import discover
from sallyport.agent.endpoint.executor import Tools
from sallyport.agent.endpoint.files import Files, Mode
from sallyport.agent.endpoint.memory import ManagedAccount, Memory, MemoryFile, ServiceClock
from sallyport.agent.endpoint.passwords import generate
from sallyport.agent.endpoint.sudoers import read as read_sudoers
from sallyport.agent.endpoint.sudoers import render
from sallyport.agentwire.state import DesiredUser, First, Quality, Rules
from sallyport.base.clock import SECOND
from sallyport.base.errors import ConfigError, HostError
from sallyport.base.wire import dumps
from tests.agent.endpoint.host import KEY, NOW, Agent, Service, bare_host, needs_shadow

# --- passwords -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policies",
    [
        (),
        (Rules(min_length=40),),
        (Rules(max_length=8, first=First.DIGIT),),
        (Rules(both_cases=False, special=False, digits=False),),
        (Rules(first=First.UPPERCASE, both_cases=False),),
        (Rules(special=False, quality=Quality(minlen=12, credits=(-3, -3, -3, 0))),),
        (Rules(quality=Quality(minlen=30, credits=(0, 0, 0, -4), maxrepeat=1, maxclassrepeat=2, maxsequence=2)),),
        (Rules(min_length=10), Rules(max_length=12, quality=Quality(minclass=4))),
    ],
)
def test_a_generated_password_meets_the_policies(policies: tuple[Rules, ...]) -> None:
    """A password is generated for each policy that can be met, and no two passwords are equal."""
    made = {generate(policies, "ann") for _ in range(20)}
    assert len(made) == 20
    for password in made:
        assert password.isascii()
        assert not set(password) & set(":\n\"'\\ ")
        for policy in policies:
            assert (policy.min_length or 0) <= len(password) <= (policy.max_length or 128)
            assert not policy.first or {"digit": str.isdigit, "uppercase": str.isupper}[policy.first](password[0])


def test_policies_that_contradict_each_other() -> None:
    """No password is generated for policies that contradict each other."""
    with pytest.raises(HostError, match="no password meets"):
        generate((Rules(digits=False), Rules(quality=Quality(credits=(-1, 0, 0, 0)))), "ann")


# --- rights --------------------------------------------------------------------------------------------------------


@needs_shadow
def test_rights_in_all_forms_of_sudoers(tmp_path: Path) -> None:
    """Users, groups, numbers, aliases, joined lines and includes grant rights.

    Comments, Defaults and skipped files do not.
    """
    host = bare_host(tmp_path)
    host.path("/etc/sudoers").write_text(
        "Defaults:bob !requiretty, x=y\n# eve ALL=(ALL) ALL\nUser_Alias OPS = eve, %staff : X = nobody\n"
        "OPS ALL = \\\n  (root) /bin/ls, /bin/df # comment\n#1500 ALL=(ALL) NOPASSWD: /bin/id\n"
        "#includedir /etc/sudoers.d\n@include more\n"
    )
    host.path("/etc/more").write_text("%#27 host1, host2=(ALL) ALL\n@include more\n")
    host.path("/etc/sudoers.d/a").write_text('"bob" ALL=ALL\n')
    host.path("/etc/sudoers.d/a.rpmsave").write_text("bob ALL=/bin/hidden\n")
    host.path("/etc/sudoers.d/b~").write_text("bob ALL=/bin/hidden\n")
    sudoers, accounts = read_sudoers(host.files), read(host.files)
    rights = {name: [rule.text for rule in sudoers.of(accounts.users[name], accounts)] for name in ("bob", "eve")}
    assert rights == {
        "bob": ["#1500 ALL=(ALL) NOPASSWD: /bin/id", '"bob" ALL=ALL'],
        "eve": ["OPS ALL = (root) /bin/ls, /bin/df", "%#27 host1, host2=(ALL) ALL"],
    }


@pytest.mark.skipif(shutil.which("visudo", path="/usr/sbin") is None, reason="visudo is not installed")
def test_visudo_checks_the_rendered_file() -> None:
    """visudo accepts the agent's file and refuses a malformed one."""
    Tools().check_sudoers(render(["ann", "ben-2"], without_password=True))
    with pytest.raises(HostError, match="visudo"):
        Tools().check_sudoers(b"ann ALL=\n")


def test_a_hash_that_would_change_another_line() -> None:
    """A hash that contains a line end or a colon is never passed to chpasswd."""
    for name, hashed in (("ann\nroot", "*"), ("ann", "*\nroot:*"), ("ann:x", "*")):
        with pytest.raises(HostError, match="another line"):
            Tools().set_password(name, hashed)


# --- discovery -----------------------------------------------------------------------------------------------------


@needs_shadow
def test_discovery(tmp_path: Path) -> None:
    """Discovery finds accounts with their rights, keys and last logins, and groups with their members. It marks the
    managed ones.
    """
    host, service = bare_host(tmp_path), Service()
    lastlog = bytearray(292 * 1502)
    struct.pack_into("<i", lastlog, 292 * 1500, NOW // SECOND)
    host.path("/var/log/lastlog").write_bytes(lastlog)
    os.truncate(host.path("/var/log/lastlog"), 8 << 30)  # an account with a uid of 30 million causes such a sparse file
    ssh = host.path("/home/bob/.ssh")
    ssh.mkdir()
    (ssh / "authorized_keys").write_text(KEY + "\n")
    for path in (ssh, ssh / "authorized_keys"):
        os.chown(path, 1500, 1500)
    service.want(DesiredUser("ann", ssh_keys=(KEY,), groups=("dev",)))
    found = Agent(host, service).pass_(look=True).discovery
    assert found is not None
    assert found.complete
    accounts = {account.name: account for account in found.accounts}
    assert accounts["bob"].last_login == NOW
    assert accounts["eve"].sudo == ("%sudo ALL=(ALL:ALL) ALL",)
    assert accounts["eve"].locked
    assert [(key.comment, key.managed) for key in accounts["bob"].keys] == [("ann@laptop", False)]
    assert [key.managed for key in accounts["ann"].keys] == [True]
    assert (accounts["ann"].managed, accounts["bob"].managed) == (True, False)
    groups = {group.name: group for group in found.groups}
    assert (groups["dev"].members, groups["dev"].managed, groups["sudo"].managed) == (("ann",), True, False)


@needs_shadow
def test_last_logins_of_wtmp(tmp_path: Path) -> None:
    """Without lastlog the last logins are read from wtmp."""
    host = bare_host(tmp_path)
    record = struct.pack(
        "<hh i 32s 4s 32s 256s hh i i i 16s 20s", 7, 0, 1, b"", b"", b"bob", b"", 0, 0, 1, 99, 0, b"", b""
    )
    host.path("/var/log/wtmp").write_bytes(record + b"half")
    agent = Agent(host, Service())
    accounts = {each.name: each for each in discover(read(host.files), agent.executor, NOW).accounts}
    assert accounts["bob"].last_login == 99 * SECOND
    assert accounts["eve"].last_login is None


@needs_shadow
@pytest.mark.torture
def test_discovery_of_a_strange_host(tmp_path: Path) -> None:
    """Thousands of accounts and malformed lines are cut to the size of a message, which is marked as incomplete."""
    host = bare_host(tmp_path)
    with host.path("/etc/passwd").open("ab") as file:
        file.write(
            b"\xff\x1b[2J:x:3000:3000:\x00:/\xff:/bin/sh\nno line\nx:x:-1:0:::\nx:x:99999999999:0:::\n:::::::::\n"
        )
        file.writelines(b"u%d:x:%d:100:%s:/home/u:/bin/sh\n" % (n, n, b"\xc3\xa9" * 150) for n in range(4000, 9000))
    agent = Agent(host, Service())
    found = discover(read(host.files), agent.executor, NOW)
    assert not found.complete
    assert len(dumps(found)) <= 450_000
    assert {account.name for account in found.accounts} >= {"root", "bob"}


# --- the clock -----------------------------------------------------------------------------------------------------


def test_the_time_of_the_service() -> None:
    """After a state, the agent's time is the service's time plus the time since boot. The wall clock does not
    matter.
    """
    wall, ticks = [50 * SECOND], [0]
    clock = ServiceClock(lambda: wall[0], lambda: ticks[0], "a boot")
    assert clock.now(None) == wall[0]
    anchor = clock.anchor(NOW)
    wall[0], ticks[0] = 3, 7 * SECOND
    assert clock.now(anchor) == NOW + 7 * SECOND
    assert clock.ahead(anchor) == 3 - NOW - 7 * SECOND


def test_after_another_boot() -> None:
    """After a reboot the agent uses the wall clock, but never a time before the last time of the service."""
    wall = [NOW + 5]
    anchor = ServiceClock(lambda: 0, lambda: 10**12, "a boot").anchor(NOW)
    clock = ServiceClock(lambda: wall[0], lambda: 3, "another")
    assert clock.now(anchor) == NOW + 5
    wall[0] = 0
    assert clock.now(anchor) == NOW


def test_the_hosts_own_clocks() -> None:
    """Without a time from the service the agent uses the wall clock. With such a time, the agent's time advances from
    it.
    """
    clock = ServiceClock()
    anchor = clock.anchor(NOW)
    assert clock.now(anchor) >= NOW
    assert clock.now(None) > NOW - 10**16


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    """A failed write keeps the old file and leaves no other file beside it."""
    (tmp_path / "etc").mkdir(mode=0o755)
    files = Files(tmp_path, owner=os.geteuid())
    files.replace("/etc/file", b"old", Mode(0o640, os.geteuid(), os.getegid()))
    assert (tmp_path / "etc/file").stat().st_mode & 0o777 == 0o640
    with pytest.raises(HostError):
        files.replace("/etc/directory/file", b"new", Mode(0o600))
    (tmp_path / "etc/taken").mkdir()
    with pytest.raises(HostError):
        files.replace("/etc/taken", b"new", Mode(0o600, os.geteuid(), os.getegid()))
    assert sorted(path.name for path in (tmp_path / "etc").iterdir()) == ["file", "taken"]
    assert (tmp_path / "etc/file").read_bytes() == b"old"
    with pytest.raises(HostError, match="longer"):
        files.read("/etc/file", most=2)
    assert files.read("/etc/none") is None
    assert files.names("/etc/none") == []


def test_paths_through_links_or_others_directories(tmp_path: Path) -> None:
    """A path is refused if it leads through a link or through a directory that others may write."""
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    files = Files(tmp_path, owner=os.geteuid())
    for path in ("/link/x", "/open/x", "/real/../open/x"):
        with pytest.raises(HostError, match=r"link|writable|No such"):
            files.replace(path, b"", Mode(0o600, os.geteuid(), os.getegid()))
    assert list((tmp_path / "open").iterdir()) == []


# --- memory ---------------------------------------------------------------------------------------------------------


def test_a_malformed_memory_stops_the_agent(tmp_path: Path) -> None:
    """A malformed memory file stops the agent, because with an empty memory the agent would not know its accounts."""
    path = tmp_path / "memory.json"
    memory = MemoryFile(path)
    memory.keep(ManagedAccount("ann", 2000))
    assert MemoryFile(path).now == Memory(kept=(ManagedAccount("ann", 2000),))
    path.write_text("{")
    with pytest.raises(ConfigError, match="the message is not JSON"):
        MemoryFile(path)


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(Memory(kept=tuple(ManagedAccount(f"a{n}") for n in range(2001))), id="accounts"),
        pytest.param(Memory(groups=tuple(f"g{n}" for n in range(2001))), id="groups"),
        pytest.param(
            Memory(kept=(ManagedAccount("a", granted=tuple(f"g{n}" for n in range(2001))),)), id="groups of an account"
        ),
    ],
)
def test_the_memory_is_bounded(tmp_path: Path, memory: Memory) -> None:
    """A memory that exceeds the read limit is not written, and the old file stays."""
    file = MemoryFile(tmp_path / "memory.json")
    file.keep(ManagedAccount("ann", 2000, granted=tuple(f"g{n}" for n in range(100))))
    before = file.now
    with pytest.raises(ConfigError, match="more than 2000"):
        file.change(memory)
    assert MemoryFile(tmp_path / "memory.json").now == file.now == before


@given(st.lists(st.text(max_size=60), max_size=10))
def test_any_passwd_is_read(lines: list[str]) -> None:
    """Files with any content yield accounts or raise HostError."""
    with_files = _Memory({"/etc/passwd": "\n".join(lines).encode("utf-8", "surrogatepass")})
    assert all(account.uid >= 0 for account in read(with_files).users.values())


class _Memory(Files):
    """Files in memory."""

    def __init__(self, content: dict[str, bytes]) -> None:
        super().__init__()
        self._content = content

    def read(self, path: str, *, most: int = 0) -> bytes | None:
        return self._content.get(path)
