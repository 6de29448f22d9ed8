"""The endpoint agent after a crash at each step of a sync, on a full disk, and beside files of other programs."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from sallyport.agent.endpoint.files import Mode
from sallyport.agentwire.state import DesiredUser, State
from sallyport.base.errors import HostError
from tests.agent.endpoint.host import (
    HASH,
    KEY,
    NOW,
    OTHER_KEY,
    Agent,
    Crash,
    FaultyFiles,
    Host,
    Service,
    bare_host,
    errors,
    needs_shadow,
)

pytestmark = [needs_shadow, pytest.mark.torture]
ANN = DesiredUser("ann", groups=("dev",), privileged=True, ssh_keys=(KEY,), password_hash=HASH)


def add_ann(service: Service) -> None:
    service.want(ANN, DesiredUser("bob", ssh_keys=(KEY,), groups=("dev",)), takeover=("bob",))


def change_ann(service: Service) -> None:
    ann = DesiredUser("ann", groups=("ops",), shell="/bin/sh", ssh_keys=(OTHER_KEY,), expires=NOW + 10**12)  # noqa: S604
    service.want(ann, DesiredUser("bob", privileged=True), takeover=("bob",))


def expire_ann(service: Service) -> None:
    service.want(DesiredUser("ann", privileged=True, ssh_keys=(KEY,), expires=NOW - 1))


def remove_ann(service: Service) -> None:
    service.want()


@pytest.mark.parametrize("change", [add_ann, change_ann, expire_ann, remove_ann])
def test_a_crash_at_every_step_of_a_sync(tmp_path: Path, change: Callable[[Service], None]) -> None:
    """The process crashes before or after each write and each program. The next run reaches the state of an
    uninterrupted run.
    """
    unhurt = _run(tmp_path / "unhurt", change, None)
    at = 0
    while True:
        result = _run(tmp_path / str(at), change, at)
        assert result[0] == unhurt[0], f"after {at} steps"
        if not result[1]:
            break
        # a crash is possible before and after each change; every third place covers all kinds in a third of the time
        at += 3
    assert at > 3


def _run(directory: Path, change: Callable[[Service], None], at: int | None) -> tuple[object, bool]:
    """Return the host's state after a crash at this step and one more run, and whether the crash happened."""
    host, service = bare_host(directory), Service()
    if change is not add_ann:
        add_ann(service)
        Agent(host, service).pass_()
    change(service)
    agent = Agent(host, service)
    host.fault.passed, host.fault.at = 0, at
    crashed = False
    try:
        agent.endpoint.poll(0)
        agent.endpoint.run()
    except Crash:
        crashed = True
    host.fault.at = None
    agent = Agent(host, service)
    report = agent.pass_()
    assert errors(report.actions) == [], f"after {at} steps"
    assert agent.left() == [], f"after {at} steps"
    return _access(host), crashed


def _access(host: Host) -> object:
    """Return the accounts, the groups and the files that grant access."""
    accounts = {
        name: (account.uid, account.shell, account.locked, account.password, account.expires, account.groups)
        for name, account in host.users().items()
    }
    files = sorted(
        (str(path.relative_to(host.prefix)), path.read_bytes())
        for pattern in ("etc/sudoers.d/*", "home/*/.ssh/*", "home/*/.ssh/.*")
        for path in host.prefix.glob(pattern)
    )
    groups = [line for line in host.path("/etc/group").read_text().splitlines() if ":999:" not in line]
    return accounts, files, sorted(line.partition(":")[0] for line in groups)


class FullDisk(FaultyFiles):
    """The files of a host that has no free disk space."""

    def put(self, directory: int, name: str, octets: bytes, mode: Mode) -> None:
        raise HostError(f"{name}: {OSError(errno.ENOSPC, 'No space left on device').strerror}")


def test_a_full_disk(tmp_path: Path) -> None:
    """A failed write is reported and leaves no partial file. When there is space again, the next pass completes the
    write.
    """
    host, service = bare_host(tmp_path), Service()
    host.files_type = FullDisk
    add_ann(service)
    report = Agent(host, service).pass_()
    assert {error.partition(":")[0] for error in errors(report.actions)} >= {"keys ann", "keys bob", "sudoers "}
    assert list(host.path("/etc/sudoers.d").iterdir()) == []
    assert host.users()["ann"].password == HASH  # a failed step does not stop the next one
    host.files_type = FaultyFiles
    agent = Agent(host, service)
    assert errors(agent.pass_().actions) == []
    assert agent.left() == []


def test_a_disk_that_is_full_for_the_memory(tmp_path: Path) -> None:
    """The agent creates no account if it cannot write its memory, because it would not recognize the account later."""
    host, service = bare_host(tmp_path), Service()
    add_ann(service)
    agent = Agent(host, service)
    agent.endpoint.poll(0)
    agent.endpoint.state = State(7, 5, NOW, users=(ANN,))
    host.state_dir.rename(host.state_dir.with_name("gone"))
    reported = agent.endpoint.run()
    assert reported is not None
    assert errors(reported[0].actions)
    assert "ann" not in host.users()
    assert "sallyport-managed" not in host.path("/etc/group").read_text()
