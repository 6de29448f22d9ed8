"""The removal of a user when steps fail and sessions continue."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.agent.endpoint.accounts import read
from sallyport.agent.endpoint.executor import EXISTS, ToolError
from sallyport.agent.endpoint.files import Mode
from sallyport.agent.endpoint.processes import Processes
from sallyport.agentwire.state import DesiredUser, Removal, Settings
from sallyport.base.errors import HostError
from tests.agent.endpoint.host import (
    KEY,
    Agent,
    FaultyFiles,
    FaultyTools,
    Host,
    Service,
    bare_host,
    errors,
    needs_shadow,
)
from tests.agent.endpoint.test_processes import as_user, running

pytestmark = needs_shadow
UID = 61_240
SUBORDINATE_UID = 2_200_000_005
ANN = DesiredUser("ann", UID, ssh_keys=(KEY,))
DEFAULTS = Settings()
LOCK = Settings(removal=Removal.LOCK)
WAIT = "print('up', flush=True)\ntime.sleep(99)"


class FailingFiles(FaultyFiles):
    """The files of a home that root cannot change, for example immutable files or files of a file server."""

    def put(self, directory: int, name: str, octets: bytes, mode: Mode) -> None:
        if mode.uid:
            raise HostError(f"{name}: Operation not permitted")
        super().put(directory, name, octets, mode)

    def hand_over(self, path: str, *, of: int, to: Mode) -> None:
        raise PermissionError(1, "Operation not permitted")


@pytest.fixture
def session() -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process of the user ann."""
    with running(as_user(WAIT, (UID,) * 3), uid=UID) as process:
        yield process


def remove_ann(host: Host, service: Service, settings: Settings = DEFAULTS) -> list[str]:
    """Remove ann, whose home root cannot change, and return the errors of the pass."""
    service.want(settings=settings)
    host.files_type = FailingFiles
    return errors(Agent(host, service, processes=Processes()).pass_().actions)


def test_sessions_end_although_the_keys_cannot_be_removed(
    host: Host, service: Service, session: "subprocess.Popen[bytes]"
) -> None:
    """A failed step does not keep a removed user logged in: the sessions are ended and the account is deleted."""
    service.want(ANN)
    Agent(host, service).pass_()
    assert {each.partition(":")[0] for each in remove_ann(host, service)} == {"keys ann", "home ann"}
    assert session.wait(10) == -signal.SIGTERM
    assert "ann" not in host.users()


def test_processes_of_subordinate_uids_end(host: Host, service: Service) -> None:
    """A process is ended with the user if its id is in the user's range in /etc/subuid."""
    service.want(ANN)
    Agent(host, service).pass_()
    host.path("/etc/subuid").write_text("ann:2200000000:65536\n")
    with running(as_user(WAIT, (SUBORDINATE_UID,) * 3), uid=SUBORDINATE_UID) as process:
        remove_ann(host, service, LOCK)
        assert process.wait(10) == -signal.SIGTERM
    assert host.users()["ann"].locked


def test_every_account_is_locked_before_a_session_ends(host: Host, service: Service) -> None:
    """If the processes of one user cannot be ended, the lock of another user is not delayed. The sessions of each user
    are ended before the keys are removed.
    """
    service.want(ANN, DesiredUser("ben", ssh_keys=(KEY,)))
    agent = Agent(host, service)
    agent.pass_()
    service.want()
    steps = [(action.kind, action.name) for action in agent.pass_().actions]
    assert steps == [
        ("lock", "ann"),
        ("lock", "ben"),
        *((kind, name) for name in ("ann", "ben") for kind in ("sessions", "keys", "home", "delete")),
    ]


def test_an_account_with_processes_is_not_deleted(
    host: Host, service: Service, session: "subprocess.Popen[bytes]"
) -> None:
    """An account with remaining processes stays locked until they have ended, because no later pass would look for
    them.
    """
    service.want(ANN)
    Agent(host, service).pass_()
    service.want(settings=Settings(end_sessions=False))
    agent = Agent(host, service, processes=Processes())
    assert errors(agent.pass_().actions) == [
        "delete ann: 1 process of the account is still running; the account stays locked until the next attempt"
    ]
    assert host.users()["ann"].locked
    session.kill()
    session.wait()
    assert errors(agent.pass_().actions) == []
    assert "ann" not in host.users()


def test_sessions_of_a_shared_uid_are_left(host: Host, service: Service, session: "subprocess.Popen[bytes]") -> None:
    """If another account has the same uid, the processes of that uid are not ended, because they may belong to the
    other account.
    """
    service.want(ANN)
    Agent(host, service).pass_()
    with host.path("/etc/passwd").open("a") as file:
        file.write(f"twin:x:{UID}:100::/home/twin:/bin/sh\n")
    assert f"sessions ann: uid {UID} is also the uid of twin: end the sessions by hand" in remove_ann(
        host, service, LOCK
    )
    assert session.poll() is None
    assert host.users()["ann"].locked


def test_a_home_that_its_user_opened_to_all(host: Host, service: Service) -> None:
    """A home is handed over to root, whatever its mode is."""
    service.want(ANN)
    agent = Agent(host, service)
    agent.pass_()
    host.path("/home/ann").chmod(0o777)
    service.want()
    agent.pass_()
    assert "ann" not in host.users()
    home = host.path("/home/ann").stat()
    assert (home.st_uid, home.st_mode & 0o777) == (0, 0o700)


def test_the_uid_of_a_deleted_user_is_not_given_again(host: Host, service: Service) -> None:
    """A new user gets no uid of a deleted user, because files and jobs of the deleted user may still be on the host."""
    agent = Agent(host, service)
    service.want(DesiredUser("ann"), DesiredUser("ben"))
    agent.pass_()
    uids = {host.users()[name].uid for name in ("ann", "ben")}
    service.want()
    agent.pass_()
    service.want(DesiredUser("cid"), DesiredUser("dan"))
    assert errors(agent.pass_().actions) == []
    assert uids.isdisjoint(host.users()[name].uid for name in ("cid", "dan"))
    service.want(DesiredUser("cid"), DesiredUser("dan"), DesiredUser("ann"))
    agent.pass_()
    assert host.users()["ann"].uid in uids


def test_a_user_that_returns_before_the_deletion_gets_the_home_back(
    host: Host, service: Service, session: "subprocess.Popen[bytes]"
) -> None:
    """A user that returns before the home is deleted gets back the home that was handed over to root."""
    service.want(ANN)
    Agent(host, service).pass_()
    service.want(settings=Settings(end_sessions=False))
    Agent(host, service, processes=Processes()).pass_()
    assert host.path("/home/ann").stat().st_uid == 0
    service.want(ANN)
    agent = Agent(host, service)
    assert errors(agent.pass_().actions) == []
    assert host.path("/home/ann").stat().st_uid == UID
    assert agent.left() == []


def test_a_returning_user_gets_no_other_directory_of_root(host: Host, service: Service) -> None:
    """A returning user gets back only the home that was handed over, not another directory that the state names."""
    agent = Agent(host, service)
    service.want(ANN)
    agent.pass_()
    service.want()
    agent.pass_()
    service.want(DesiredUser("ann", UID, home="/srv"))
    agent.pass_()
    assert host.users()["ann"].home == "/srv"
    assert host.path("/srv").stat().st_uid == os.geteuid()


class BusyName(FaultyTools):
    """A fake useradd on a host whose directory service already has the name."""

    def account(self, program: str, *arguments: str) -> None:
        if program == "useradd":
            raise ToolError("useradd: user 'ann' already exists (status 9)", EXISTS)
        super().account(program, *arguments)


def test_a_name_that_useradd_finds_in_a_directory(tmp_path: Path, service: Service) -> None:
    """useradd refuses an account because its name is in use. When the account appears, the agent does not treat it as
    its own.
    """
    host = bare_host(tmp_path)
    service.want(DesiredUser("ann"))
    agent = Agent(host, service, tools=BusyName(host.prefix))
    assert errors(agent.pass_().actions) == ["create ann: useradd: user 'ann' already exists (status 9)"]
    assert agent.executor.memory.now.of("ann") is None
    with host.path("/etc/passwd").open("a") as file:
        file.write("ann:x:1800:1800::/home/ann:/bin/sh\n")
    assert errors(Agent(host, service).pass_().actions) == [
        "refuse ann: the account exists already, and the state does not let the agent take it over"
    ]
    assert not read(host.files).in_managed_group("ann")
