"""Accounts and their expiry, changed by the programs of the package shadow with a prefix."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sallyport.agent import file
from sallyport.agent.endpoint.accounts import DAY, MANAGED_GROUP
from sallyport.agentwire.envelope import envelope
from sallyport.agentwire.fields import NO_PASSWORD
from sallyport.agentwire.report import DriftKind, Poll
from sallyport.agentwire.state import DesiredGroup, DesiredUser, Removal, Settings
from sallyport.base.clock import SECOND
from sallyport.base.errors import Locked, WireError
from tests.agent.endpoint.host import (
    HASH,
    KEY,
    NOW,
    OTHER_HASH,
    Agent,
    Crash,
    Host,
    Service,
    bare_host,
    errors,
    needs_shadow,
)

pytestmark = needs_shadow
SUDOERS = "/etc/sudoers.d/sallyport"
PUT_BACK = Settings(put_back_privileges=True)


def test_a_user_is_added_and_removed(host: Host, service: Service) -> None:
    """A user of the state is on the host with all its values.

    After its removal nothing of it is left. A second pass has nothing to do.
    """
    ann = DesiredUser(
        "ann", 2000, ("dev",), True, "/srv/ann", "/bin/sh", (KEY,), HASH, expires=NOW + 10 * DAY
    )  # every field
    service.want(ann, groups=(DesiredGroup("dev", 3000),))
    agent = Agent(host, service)
    assert errors(agent.pass_().actions) == []
    account = host.users()["ann"]
    assert (account.uid, account.home, account.shell, account.password) == (2000, "/srv/ann", "/bin/sh", HASH)
    assert account.groups == {"dev", MANAGED_GROUP}
    assert account.expires == (NOW + 10 * DAY) // DAY + 1
    assert host.path("/srv/ann").stat().st_uid == 2000
    assert host.path(SUDOERS).read_text().endswith("\nann ALL=(ALL:ALL) ALL\n")
    assert host.path(SUDOERS).stat().st_mode & 0o777 == 0o440
    assert KEY in host.path("/srv/ann/.ssh/authorized_keys").read_text()
    assert agent.left() == []

    service.want(groups=())
    assert errors(agent.pass_().actions) == []
    assert "ann" not in host.users()
    assert not host.path(SUDOERS).exists()
    assert "dev" not in host.path("/etc/group").read_text()
    home = host.path("/srv/ann").stat()
    assert (home.st_uid, home.st_mode & 0o777) == (0, 0o700)
    assert agent.left() == []


def test_a_user_comes_back(host: Host, service: Service) -> None:
    """A user that returns gets its former uid and its former home."""
    agent = Agent(host, service)
    service.want(DesiredUser("ann"), DesiredUser("ben"))
    agent.pass_()
    uid = host.users()["ben"].uid
    host.path("/home/ben/kept").write_text("mine")
    service.want()
    agent.pass_()
    service.want(DesiredUser("cid"), DesiredUser("ben"))
    assert errors(Agent(host, service).pass_().actions) == []
    assert host.users()["ben"].uid == uid
    assert host.path("/home/ben").stat().st_uid == uid
    assert host.path("/home/ben/kept").read_text() == "mine"


def test_existing_accounts_stay(host: Host, service: Service) -> None:
    """An existing account stays unchanged unless it may be taken over. A system account is never taken over."""
    before = {each: host.path(f"/etc/{each}").read_text() for each in ("passwd", "shadow")}
    service.want(
        DesiredUser("bob", privileged=True, password_hash=OTHER_HASH),
        DesiredUser("root", password_hash=OTHER_HASH),
        DesiredUser("daemon"),
        takeover=("root", "daemon"),
    )
    report = Agent(host, service).pass_()
    assert len(errors(report.actions)) == 3
    assert before == {each: host.path(f"/etc/{each}").read_text() for each in before}
    assert not host.path(SUDOERS).exists()


def test_taking_over(host: Host, service: Service) -> None:
    """A taken-over account gets the values of the state.

    If the state no longer has the user, the account is locked and not deleted, and its home stays.
    """
    service.want(DesiredUser("bob", groups=("dev",), ssh_keys=(KEY,), password_hash=OTHER_HASH), takeover=("bob",))
    agent = Agent(host, service)
    assert errors(agent.pass_().actions) == []
    assert host.users()["bob"].password == OTHER_HASH
    assert host.groups_of("bob") == {"dev", MANAGED_GROUP}
    service.want()
    assert errors(agent.pass_().actions) == []
    bob = host.users()["bob"]
    assert bob.locked
    assert host.path("/home/bob").stat().st_uid == bob.uid
    assert KEY not in host.path("/home/bob/.ssh/authorized_keys").read_text()
    assert agent.left() == []
    service.want(DesiredUser("bob"), takeover=("bob",))
    agent.pass_()
    assert not host.users()["bob"].locked
    assert host.users()["bob"].password == OTHER_HASH


def test_expiry_without_the_service(host: Host, service: Service) -> None:
    """An account is locked when it expires, even if the service is unreachable. If its expiry is postponed, it is
    unlocked.
    """
    ann = DesiredUser("ann", privileged=True, ssh_keys=(KEY,), password_hash=HASH, expires=NOW + 3600 * SECOND)
    service.want(ann)
    agent = Agent(host, service)
    agent.pass_()
    assert agent.endpoint.next_expiry() == ann.expires
    service.away = True
    host.since_boot = 3599 * SECOND
    agent.pass_()
    assert not host.users()["ann"].locked
    host.since_boot = 3600 * SECOND
    later = Agent(host, service)  # the account stays locked after a restart
    later.pass_()
    assert host.users()["ann"].locked
    assert not host.path(SUDOERS).exists()
    assert KEY not in host.path("/home/ann/.ssh/authorized_keys").read_text()
    assert later.left() == []
    service.away = False
    service.want(replace(ann, expires=NOW + 9000 * SECOND))
    assert errors(later.pass_().actions) == []
    assert not host.users()["ann"].locked
    assert host.users()["ann"].password == HASH


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_wrong(host: Host, service: Service, hours: int) -> None:
    """On a host whose clock is wrong by two hours, accounts expire at the service's time. The wrong clock is
    reported.
    """
    host.wall = NOW + hours * 3600 * SECOND
    service.want(DesiredUser("ann", expires=NOW + 3600 * SECOND), DesiredUser("ben", expires=NOW - SECOND))
    agent = Agent(host, service)
    report = agent.pass_()
    assert not host.users()["ann"].locked
    assert "ben" not in host.users()
    assert [each.kind for each in report.drift] == [DriftKind.CLOCK]
    assert report.clock_us == hours * 3600 * SECOND


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (DesiredUser("ann", uid=500), "the uid is reserved for system accounts"),
        (DesiredUser("ann", uid=1500), "another account has the same uid"),
        (DesiredUser("ann", home="/etc/ann"), "the home directory would be a system directory"),
        (DesiredUser("keep"), "the account is protected in the agent's configuration file"),
    ],
)
def test_harmful_users_are_refused(tmp_path: Path, service: Service, user: DesiredUser, reason: str) -> None:
    """A user is not created if it is protected or would get another user's files. The report has the reason."""
    host = bare_host(tmp_path, protected=frozenset({"keep"}))
    service.want(user)
    assert errors(Agent(host, service).pass_().actions) == [f"refuse {user.name}: {reason}"]
    assert user.name not in host.users()


def test_a_lost_memory(host: Host, service: Service) -> None:
    """An agent that has lost its memory finds its accounts by their group. It locks them and deletes none."""
    service.want(DesiredUser("ann", ssh_keys=(KEY,)))
    Agent(host, service).pass_()
    (host.state_dir / "memory.json").unlink()
    agent = Agent(host, service)
    assert errors(agent.pass_().actions) == []
    service.want()
    agent.pass_()
    assert host.users()["ann"].locked


def test_an_account_replaced_by_hand(host: Host, service: Service) -> None:
    """An account with a managed name but another uid does not belong to the agent: it is reported and stays
    unchanged.
    """
    service.want(DesiredUser("ann", uid=2000))
    agent = Agent(host, service)
    agent.pass_()
    passwd = host.path("/etc/passwd")
    passwd.write_text(passwd.read_text().replace("ann:x:2000", "ann:x:2001"))
    assert errors(agent.pass_().actions) == [
        "refuse ann: the account exists already, and the state does not let the agent take it over"
    ]
    service.want()
    report = agent.pass_()
    assert [each.kind for each in report.drift] == [DriftKind.ACCOUNT]
    assert "ann" in host.users()


def test_locking_instead_of_deleting(host: Host, service: Service) -> None:
    """With removal = lock an account that the agent created is locked and not deleted."""
    service.want(DesiredUser("ann", password_hash=HASH), settings=Settings(removal=Removal.LOCK))
    agent = Agent(host, service)
    agent.pass_()
    service.want()
    agent.pass_()
    assert host.users()["ann"].locked
    assert agent.left() == []


def test_passwords_are_set_once(host: Host, service: Service) -> None:
    """A hash is set when the state has a new one.

    A password that the user changed meanwhile is reported as drift and stays.
    """
    service.want(DesiredUser("ann", password_hash=HASH))
    agent = Agent(host, service)
    agent.pass_()
    shadow = host.path("/etc/shadow")
    shadow.write_text(shadow.read_text().replace(f"ann:{HASH}", f"ann:{OTHER_HASH}"))
    report = agent.pass_()
    assert [(each.kind, each.name) for each in report.drift] == [(DriftKind.PASSWORD, "ann")]
    assert host.users()["ann"].password == OTHER_HASH
    service.want(DesiredUser("ann", password_hash=NO_PASSWORD))
    agent.pass_()
    assert host.users()["ann"].password == NO_PASSWORD


def test_a_locked_passwd_file(host: Host, service: Service) -> None:
    """While another program holds the lock, the report has the error. The next pass completes the change."""
    service.want(DesiredUser("ann"))
    agent = Agent(host, service)
    agent.endpoint.poll(0)
    lock = host.path("/etc/passwd.lock")
    lock.write_text(str(os.getpid()))
    held = agent.pass_()
    assert any("lock" in error for error in errors(held.actions))
    assert "ann" not in host.users()
    lock.unlink()
    assert errors(agent.pass_().actions) == []
    assert "ann" in host.users()


def test_invalid_states(host: Host, service: Service) -> None:
    """A state is refused if it is malformed, older, or meant for another machine. The last state stays in force."""
    service.want(DesiredUser("ann"))
    agent = Agent(host, service)
    agent.pass_()
    old = service.state_now
    service.want(DesiredUser("ann"), DesiredUser("ben"))
    agent.pass_()
    stranger = Service()
    for state in (replace(old, users=()), replace(service.state_now, instance=8, version=99, users=())):
        service.state_now, kept = state, service.state_now
        with pytest.raises(WireError, match=r"is lower|another instance"):
            agent.pass_()
        service.state_now = kept
    stranger.state_now = replace(service.state_now, version=99, users=())
    for garbled in ([], {}, "", {"payload": "", "signature": ""}, stranger.state(Poll())):
        service.garbled = garbled
        with pytest.raises(WireError, match=r"object|missing|signature|text"):
            agent.endpoint.poll(0)
    service.garbled = None
    again = Agent(host, service)
    assert again.endpoint.state == service.state_now
    assert again.left() == []
    assert {"ann", "ben"} <= host.users().keys()


def test_a_home_that_would_move_into_the_system(host: Host, service: Service) -> None:
    """The home of an existing account is not set to a system directory."""
    service.want(DesiredUser("ann"))
    agent = Agent(host, service)
    agent.pass_()
    service.want(DesiredUser("ann", home="/etc/ssh"))
    assert errors(agent.pass_().actions) == ["refuse ann: the home directory would be a system directory"]
    assert host.users()["ann"].home == "/home/ann"


def test_one_agent_at_a_time(host: Host) -> None:
    """A second agent on a host is refused, because it would undo the changes of the first one."""
    with file.alone(host.state_dir), pytest.raises(Locked), file.alone(host.state_dir):
        raise AssertionError("two at a time")
    with file.alone(host.state_dir):
        pass


@needs_shadow
def test_a_rotated_state_key(host: Host, service: Service) -> None:
    """A state that is signed with the old key announces the new one, and from then on the old key is invalid.

    After a restart without the service, the state on disk stays in force.
    """
    service.want(DesiredUser("ann"))
    Agent(host, service).pass_()
    service.rotate_key()
    agent = Agent(host, service)
    agent.pass_()
    service.away = True
    assert Agent(host, service).endpoint.state == agent.endpoint.state
    service.away = False
    service.want(*service.state_now.users)
    agent.pass_()
    assert agent.endpoint.state == service.state_now
    forged = envelope(service.former.sign, replace(service.state_now, version=service.state_now.version + 1))
    service.garbled = forged
    with pytest.raises(WireError, match="signature"):
        Agent(host, service).endpoint.poll(0)


@needs_shadow
def test_a_crash_while_the_key_changes(host: Host, service: Service) -> None:
    """After a crash between any two writes, the agent accepts its stored state and the next one."""
    service.want(DesiredUser("ann"))
    Agent(host, service).pass_()
    for at in range(8):
        service.rotate_key()
        host.fault.at = at
        with suppress(Crash):
            Agent(host, service).endpoint.poll(0)
        host.fault.at = None
        service.away = True
        assert Agent(host, service).endpoint.state is not None
        service.away = False
        Agent(host, service).pass_()
        assert Agent(host, service).endpoint.state == service.state_now
