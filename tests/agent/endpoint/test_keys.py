"""SSH keys: the agent's block in authorized_keys, the files of the key command, and obstacles that users create."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.agent.endpoint.executor import Keys
from sallyport.agent.endpoint.keys import (
    BEGIN,
    END,
    MAX_LENGTH,
    KeyFile,
    authorized,
    for_command,
    found,
    parse,
    printable,
)
from sallyport.agentwire.report import DriftKind
from sallyport.agentwire.state import DesiredUser, Settings
from tests.agent.endpoint.host import KEY, NOW, OTHER_KEY, Agent, Host, Service, bare_host, errors, needs_shadow

AUTHORIZED = "/home/ann/.ssh/authorized_keys"


@given(st.lists(st.sampled_from([KEY, OTHER_KEY, BEGIN, END, "# mine", "", "rubbish"]), max_size=8))
def test_lines_outside_the_block_stay(lines: list[str]) -> None:
    """The block contains the agent's keys afterwards, whatever the file contained. No line outside the block is lost or
    moved into it.
    """
    before = parse("\n".join(lines).encode())
    after = parse(before.with_keys([KEY], alone=False))
    assert after.managed == (KEY,)
    assert after.others == before.others
    assert parse(after.with_keys([], alone=True)).unknown == ()
    assert set(before.others) <= set(lines)


def test_fingerprints() -> None:
    """A key is shown with the fingerprint that ssh-keygen shows. A malformed line has no fingerprint."""
    key = found('from="10.0.0.0/8",no-pty ' + KEY, managed=False)
    assert (key.type, key.comment) == ("ssh-ed25519", "ann@laptop")
    assert key.fingerprint.startswith("SHA256:")
    assert len(key.fingerprint) == 50
    assert found("ssh-ed25519 ???", managed=True).fingerprint == ""
    assert found("\x1b[2J", managed=True).type == "unknown"


def test_a_comment_that_an_older_service_takes() -> None:
    """Characters newer than the service's Unicode version are replaced, so that its Python accepts the report.

    Other characters stay.
    """
    comment = found(f"{KEY} Ünal \u65e5\u672c \U0001f98a", managed=False).comment
    assert comment == "ann@laptop Ünal \u65e5\u672c \ufffd"
    assert printable("\x1b\udcff a\u202eb", 5) == "\ufffd\ufffd a\ufffd"


def test_the_commands_file_ends_with_the_account() -> None:
    """The keys in the file of the key command are valid until the account expires, even if the agent does not run."""
    octets = for_command([KEY, OTHER_KEY], NOW)
    assert authorized(octets, NOW - 1) == (KEY, OTHER_KEY)
    assert authorized(octets, NOW) == ()
    assert authorized(for_command([KEY], None), NOW) == (KEY,)
    assert authorized(octets.replace(str(NOW).encode(), b"soon"), 0) == ()
    assert for_command([], NOW) == b""


@needs_shadow
@pytest.mark.parametrize("remove", [False, True])
def test_unknown_keys(tmp_path: Path, service: Service, remove: bool) -> None:
    """Keys that the service does not know are reported. They are removed only if the setting requires it."""
    host = bare_host(tmp_path)
    service.want(DesiredUser("ann", ssh_keys=(KEY,)), settings=Settings(remove_unknown_keys=remove))
    agent = Agent(host, service)
    agent.pass_()
    path = host.path(AUTHORIZED)
    path.write_text("# mine\n" + OTHER_KEY + "\n" + path.read_text())
    report = agent.pass_()
    assert [(each.kind, each.put_back) for each in report.drift] == [(DriftKind.KEY, remove)]
    assert "bob@laptop" in report.drift[0].detail
    assert (OTHER_KEY in path.read_text()) is not remove
    assert KEY in path.read_text()
    assert "# mine" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert agent.left() == []


@needs_shadow
@pytest.mark.parametrize("remove", [False, True])
def test_unknown_keys_in_the_second_file(tmp_path: Path, service: Service, remove: bool) -> None:
    """Keys in authorized_keys2, which sshd also reads, are reported, even if they are between the agent's marker lines.

    The file is emptied if the setting requires it.
    """
    host = bare_host(tmp_path)
    service.want(DesiredUser("ann", ssh_keys=(KEY,)), settings=Settings(remove_unknown_keys=remove))
    agent = Agent(host, service)
    agent.pass_()
    path = host.path(f"{AUTHORIZED}2")
    path.write_text(f"{BEGIN}\n{OTHER_KEY}\n{END}\n")
    report = agent.pass_()
    assert [(each.kind, each.put_back) for each in report.drift] == [(DriftKind.KEY, remove)]
    assert (OTHER_KEY in path.read_text()) is not remove
    assert OTHER_KEY not in host.path(AUTHORIZED).read_text()
    assert KEY in host.path(AUTHORIZED).read_text()
    assert agent.left() == []


@needs_shadow
def test_keys_by_command(tmp_path: Path, service: Service) -> None:
    """The keys are in a directory that root owns, and the home stays unchanged. The keys are removed with the
    account.
    """
    host = bare_host(tmp_path, keys="command")
    service.want(DesiredUser("ann", ssh_keys=(KEY,), expires=NOW + 10**9))
    agent = Agent(host, service)
    assert errors(agent.pass_().actions) == []
    path = host.path("/var/lib/sallyport-keys/ann")
    assert authorized(path.read_bytes(), NOW) == (KEY,)
    assert path.stat().st_mode & 0o777 == 0o644
    assert not host.path("/home/ann/.ssh").exists()
    assert agent.left() == []
    service.want()
    agent.pass_()
    assert not path.exists()


@needs_shadow
def test_keys_that_are_not_managed(tmp_path: Path, service: Service) -> None:
    """With keys = off the agent does not read any home."""
    host = bare_host(tmp_path, keys="off")
    service.want(DesiredUser("ann", ssh_keys=(KEY,)))
    assert errors(Agent(host, service).pass_().actions) == []
    assert not host.path("/home/ann/.ssh").exists()


def file_is_a_link(host: Host) -> None:
    _ssh(host).joinpath("authorized_keys").symlink_to("../../../etc/shadow")


def directory_is_a_link(host: Host) -> None:
    host.path("/home/ann/.ssh").symlink_to("../../etc")


def home_is_a_link(host: Host) -> None:
    host.path("/home/ann").rename(host.path("/home/real"))
    host.path("/home/ann").symlink_to("real")


def file_is_a_hard_link(host: Host) -> None:
    os.link(host.path("/etc/shadow"), _ssh(host) / "authorized_keys")


def file_is_a_pipe(host: Host) -> None:
    os.mkfifo(_ssh(host) / "authorized_keys")


def file_is_a_directory(host: Host) -> None:
    (_ssh(host) / "authorized_keys").mkdir()


def file_of_another_user(host: Host) -> None:
    path = _ssh(host) / "authorized_keys"
    path.write_text(OTHER_KEY)
    os.chown(path, 1500, 1500)


def directory_open_to_all(host: Host) -> None:
    _ssh(host).chmod(0o777)


def _ssh(host: Host) -> Path:
    path = host.path("/home/ann/.ssh")
    path.mkdir()
    os.chown(path, 2000, 2000)
    return path


@needs_shadow
@pytest.mark.torture
@pytest.mark.parametrize(
    "trap",
    [
        file_is_a_link,
        directory_is_a_link,
        home_is_a_link,
        file_is_a_hard_link,
        file_is_a_pipe,
        file_is_a_directory,
        file_of_another_user,
        directory_open_to_all,
    ],
)
def test_obstacles_that_a_user_makes(tmp_path: Path, service: Service, trap: object) -> None:
    """A link, a pipe or a file of another user is refused, and the error names it.

    The rest of the pass runs, and no file outside the home is read or changed.
    """
    assert callable(trap)
    host = bare_host(tmp_path)
    service.want(DesiredUser("ann", uid=2000))
    agent = Agent(host, service)
    agent.pass_()
    shadow = host.path("/etc/shadow").read_bytes()
    listing = sorted(each.name for each in host.path("/etc").iterdir())
    trap(host)
    service.want(DesiredUser("ann", uid=2000, ssh_keys=(KEY,)), DesiredUser("ben", uid=2001, ssh_keys=(KEY,)))
    report = agent.pass_(look=True)
    assert any(error.startswith("keys ann: ") for error in errors(report.actions))
    assert KEY in host.path("/home/ben/.ssh/authorized_keys").read_text()
    service.want(DesiredUser("ann", uid=2000))
    agent.pass_()
    assert [line for line in host.path("/etc/shadow").read_bytes().splitlines() if b"ben" not in line] == (
        shadow.splitlines()
    )
    assert {"authorized_keys", ".ssh"}.isdisjoint(each.name for each in host.path("/etc").iterdir())
    assert set(listing) <= {each.name for each in host.path("/etc").iterdir()}


def file_links_into_the_home(host: Host) -> None:
    host.path("/home/ann/own").write_text(OTHER_KEY)
    _ssh(host).joinpath("authorized_keys").symlink_to("../own")


def second_file_is_a_link(host: Host) -> None:
    host.path("/home/ann/own").write_text(OTHER_KEY)
    _ssh(host).joinpath("authorized_keys2").symlink_to("../own")


def directory_links_into_the_home(host: Host) -> None:
    _ssh(host).rename(host.path("/home/ann/own"))
    host.path("/home/ann/own/authorized_keys").write_text(OTHER_KEY)
    host.path("/home/ann/.ssh").symlink_to("own")


def file_of_8_gib(host: Host) -> None:
    _long(_ssh(host) / "authorized_keys", 2**33)


def second_file_is_long(host: Host) -> None:
    _long(_ssh(host) / "authorized_keys2", MAX_LENGTH)


def _long(path: Path, size: int) -> None:
    """Write a file that has a comment of this size before a key."""
    with path.open("wb") as file:
        file.write(b"# mine\n#")
        file.seek(size)
        file.write(f"\n{OTHER_KEY}\n".encode())
    os.chown(path, 2000, 2000)


@needs_shadow
@pytest.mark.parametrize(
    "trap",
    [
        file_links_into_the_home,
        second_file_is_a_link,
        directory_links_into_the_home,
        file_of_8_gib,
        second_file_is_long,
        file_is_a_hard_link,
    ],
)
@pytest.mark.parametrize("keys", ["file", "command"])
def test_unknown_keys_where_the_agent_cannot_read_them(
    tmp_path: Path, service: Service, trap: Callable[[Host], None], keys: Keys
) -> None:
    """sshd reads a key that comes after a link or after a million octets.

    One pass replaces the file with one that contains the keys of the state. The target of a link stays unchanged.
    """
    host = bare_host(tmp_path, keys=keys)
    service.want(DesiredUser("ann", uid=2000), settings=Settings(remove_unknown_keys=True))
    agent = Agent(host, service)
    agent.pass_()
    shadow = host.path("/etc/shadow").read_bytes()
    trap(host)
    service.want(DesiredUser("ann", uid=2000, ssh_keys=(KEY,)))
    assert errors(agent.pass_().actions) == []
    text = "".join(path.read_text() for path in host.path("/home/ann/.ssh").iterdir())
    assert OTHER_KEY not in text
    assert (KEY in text) is (keys == "file")
    assert host.path("/etc/shadow").read_bytes() == shadow
    assert agent.left() == []


@needs_shadow
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_long_file_of_a_user_stays(tmp_path: Path, service: Service, is_taken: bool) -> None:
    """If unknown keys may stay, the agent adds its keys to a file of any length, and the first lines of the file stay.

    The old file is kept beside it, unless its name is taken. The next pass has nothing to do.
    """
    host = bare_host(tmp_path)
    service.want(DesiredUser("ann", uid=2000))
    agent = Agent(host, service)
    agent.pass_()
    path = _ssh(host) / "authorized_keys"
    path.write_text(f"{OTHER_KEY}\n" + "# mine\n" * (MAX_LENGTH // 7 + 1))
    os.chown(path, 2000, 2000)
    before = path.read_bytes()
    if is_taken:
        path.with_suffix(".long").mkdir()
    service.want(DesiredUser("ann", uid=2000, ssh_keys=(KEY,)))
    assert errors(agent.pass_().actions) == []
    assert {KEY, OTHER_KEY, "# mine"} <= set(path.read_text().splitlines())
    assert is_taken or path.with_suffix(".long").read_bytes() == before
    assert agent.left() == []


def test_thousands_of_blocks() -> None:
    """A file that is full of the agent's markers gets one block, and the pass succeeds."""
    hostile = f"{BEGIN}\nmine\n{END}\n{BEGIN}\n" * 8000 + f"{KEY}\n"
    there = parse(hostile.encode())
    assert there.unknown == (KEY,)
    assert parse(there.with_keys([OTHER_KEY], alone=False)) == KeyFile((OTHER_KEY,), there.others)
