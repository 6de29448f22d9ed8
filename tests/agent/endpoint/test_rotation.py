"""Password rotation: the service knows the password in force at each instant."""

from dataclasses import replace
from pathlib import Path

import pytest

from sallyport.agent.endpoint.passwords import hash_password, matches
from sallyport.agentwire.report import DriftKind, Phase, Rotation
from sallyport.agentwire.state import DesiredUser, Quality, Rules, TriggerKind
from sallyport.base.errors import HostError, ServiceAway, ServiceRefused
from tests.agent.endpoint.host import (
    HASH,
    OTHER_HASH,
    Agent,
    Crash,
    FaultyTools,
    Host,
    Service,
    bare_host,
    errors,
    needs_shadow,
)

ANN = DesiredUser("ann", password_hash=HASH)


@pytest.mark.parametrize("method", ["YESCRYPT", "SHA512", "DES"])
def test_hashes_as_the_host_has_them(method: str) -> None:
    """A hash is yescrypt if the host uses it, else SHA-512. Both verify, and no two hashes are equal."""
    hashed = hash_password("a password", method)
    assert hashed.startswith("$y$" if method == "YESCRYPT" else "$6$")
    assert matches("a password", hashed)
    assert not matches("another", hashed)
    assert hashed != hash_password("a password", method)


def in_force(host: Host) -> str:
    return host.users()["ann"].password


def known(service: Service) -> set[str]:
    """Return the hashes of passwords that the service could show an admin."""
    return {HASH, *service.known.get("ann", ()), service.current.get("ann", ("", ""))[1]}


@needs_shadow
def test_a_rotation_sets_a_new_password(host: Host, service: Service) -> None:
    """The new password is in force and meets the policies, and the service knows it.

    A state with the hash of the new password changes nothing, and neither does an older state.
    """
    service.want(ANN, policies=(Rules(min_length=30, quality=Quality(credits=(0, 0, 0, -2))),))
    agent = Agent(host, service)
    agent.pass_()
    before = service.state_now
    service.order(TriggerKind.ROTATE, "ann")
    report = agent.pass_()
    assert [(each.trigger, each.error) for each in report.outcomes] == [(1, "")]
    password, hashed = service.current["ann"]
    assert in_force(host) == hashed
    assert matches(password, hashed)
    assert len(password) == 30
    assert not list(host.state_dir.glob("rotation*"))
    assert password.encode() not in b"".join(path.read_bytes() for path in host.state_dir.iterdir())
    agent.pass_()
    assert in_force(host) == hashed
    assert agent.pass_().drift == ()
    service.want(*before.users, triggers=())
    agent.pass_()
    assert in_force(host) == hashed
    service.want(replace(ANN, password_hash=OTHER_HASH))
    agent.pass_()
    assert in_force(host) == OTHER_HASH


@needs_shadow
def test_a_trigger_is_done_once(host: Host, service: Service) -> None:
    """A trigger runs once, even if the state lists it repeatedly and the agent restarts."""
    service.want(ANN)
    service.order(TriggerKind.ROTATE, "ann")
    Agent(host, service).pass_()
    first = in_force(host)
    service.want(*service.state_now.users)
    report = Agent(host, service).pass_()
    assert in_force(host) == first
    assert [each.trigger for each in report.outcomes] == [1]
    service.want(*service.state_now.users, triggers=())
    assert Agent(host, service).pass_().outcomes == ()


@needs_shadow
def test_users_that_cannot_be_rotated(host: Host, service: Service) -> None:
    """For an unmanaged user, a locked account and contradicting policies, the outcome has the reason, and nothing is
    changed.
    """
    service.want(ANN, policies=(Rules(min_length=10), Rules(max_length=5)))
    agent = Agent(host, service)
    agent.pass_()
    service.order(TriggerKind.ROTATE, "ann")
    service.order(TriggerKind.ROTATE, "bob", "root", "nobody-here")
    report = agent.pass_()
    assert [bool(each.error) for each in report.outcomes] == [True, True]
    assert in_force(host) == HASH
    assert host.users()["root"].password == "*"
    assert not service.candidates


@needs_shadow
def test_an_unreachable_service(host: Host, service: Service) -> None:
    """If the service has not acknowledged the escrow, nothing changes. When the service is reachable again, the order
    runs.
    """
    service.want(ANN)
    service.order(TriggerKind.ROTATE, "ann")
    agent = Agent(host, service)
    agent.endpoint.poll(0)
    service.away = True
    report = agent.pass_()
    assert report.outcomes == ()
    assert in_force(host) == HASH
    assert agent.endpoint.is_unfinished
    service.away = False
    assert [each.error for each in agent.pass_().outcomes] == [""]
    assert in_force(host) == service.current["ann"][1]
    assert not agent.endpoint.is_unfinished


@needs_shadow
def test_a_service_that_declines(host: Host, service: Service) -> None:
    """A candidate that the service refuses is never in force."""
    service.want(ANN)
    service.order(TriggerKind.ROTATE, "ann")
    service.declines = True
    report = Agent(host, service).pass_()
    assert [bool(each.error) for each in report.outcomes] == [True]
    assert in_force(host) == HASH


@needs_shadow
@pytest.mark.torture
def test_a_crash_at_every_step_of_a_rotation(tmp_path: Path) -> None:
    """The process crashes before or after each write, program and message.

    The service knows the password in force each time, and the next run completes the rotation or starts it again.
    """
    at, crashed = 0, True
    while crashed:
        host, service = bare_host(tmp_path / str(at)), Service()
        service.want(ANN)
        agent = Agent(host, service)
        agent.pass_()
        service.order(TriggerKind.ROTATE, "ann")
        agent.endpoint.poll(0)
        host.fault.passed, host.fault.at = 0, at
        try:
            agent.endpoint.run()
            crashed = False
        except Crash:
            pass
        assert in_force(host) in known(service), f"after {at} steps"
        host.fault.at = None
        agent = Agent(host, service)
        agent.pass_()
        report = agent.pass_()
        assert errors(report.actions) == [], f"after {at} steps"
        assert [each.error for each in report.outcomes] == [""], f"after {at} steps"
        assert in_force(host) == service.current["ann"][1]
        assert not service.candidates
        assert report.drift == ()
        at += 1
    assert at > 10


@needs_shadow
@pytest.mark.parametrize("phases", [1, 2, 3])
def test_a_lost_answer(host: Host, phases: int) -> None:
    """A message whose answer is lost is repeated or abandoned, and the service knows the password in force
    throughout.
    """

    class Lossy(Service):
        left = phases

        def rotation(self, message: Rotation) -> None:
            super().rotation(message)
            self.left -= 1
            if self.left == 0:
                raise ServiceAway("no answer in time")

    service = Lossy()
    service.want(ANN)
    service.order(TriggerKind.ROTATE, "ann")
    agent = Agent(host, service)
    for _ in range(4):
        agent.pass_()
        assert in_force(host) in known(service)
    assert in_force(host) == service.current["ann"][1]
    assert [each.error for each in agent.pass_().outcomes] == [""]


@needs_shadow
def test_a_service_that_lost_the_candidate(host: Host) -> None:
    """If the service does not know the password in force, the agent makes another one."""

    class Restored(Service):
        restored = False

        def rotation(self, message: Rotation) -> None:
            if message.phase is Phase.CONFIRM and not self.restored:
                self.restored = True
                self.candidates.clear()
                self.known.clear()
                raise ServiceRefused("no such rotation", 404)
            super().rotation(message)

    service = Restored()
    service.want(ANN)
    service.order(TriggerKind.ROTATE, "ann")
    agent = Agent(host, service)
    assert agent.pass_().outcomes == ()
    assert agent.endpoint.is_unfinished
    assert [each.error for each in agent.pass_().outcomes] == [""]
    assert in_force(host) == service.current["ann"][1]


@needs_shadow
def test_a_password_that_the_user_changes_is_drift(host: Host, service: Service) -> None:
    """A password that the user has changed is reported until a rotation or a new password of the service replaces
    it.
    """
    service.want(ANN)
    agent = Agent(host, service)
    agent.pass_()
    shadow = host.path("/etc/shadow")
    shadow.write_text(shadow.read_text().replace(f"ann:{HASH}", f"ann:{OTHER_HASH}"))
    assert [each.kind for each in agent.pass_().drift] == [DriftKind.PASSWORD]
    service.order(TriggerKind.ROTATE, "ann")
    agent.pass_()
    assert agent.pass_().drift == ()


@needs_shadow
def test_a_journal_that_cannot_be_read(host: Host, service: Service) -> None:
    """If the journal is unreadable, no password changes until an admin repairs it.

    The rest of the pass runs, and the report contains the error.
    """
    service.want(ANN)
    agent = Agent(host, service)
    agent.pass_()
    (host.state_dir / "rotation.json").write_text("{")
    service.want(replace(ANN, password_hash=OTHER_HASH), DesiredUser("ben"))
    service.order(TriggerKind.ROTATE, "ann")
    report = agent.pass_()
    assert len(errors(report.actions)) == 1
    assert "ben" in host.users()
    assert in_force(host) == HASH
    assert report.outcomes == ()


class Slow(FaultyTools):
    """A fake chpasswd(8) that changes ann's password and then times out."""

    def set_password(self, name: str, password_hash: str) -> None:
        super().set_password(name, password_hash)
        if name == "ann":
            raise HostError("chpasswd: took too long")


@needs_shadow
def test_an_uncertain_change_delays_the_next(host: Host, service: Service) -> None:
    """In an order for two users, the second user waits until it is certain which password of the first user is in
    force.
    """
    service.want(ANN, DesiredUser("cara", password_hash=HASH))
    Agent(host, service).pass_()
    service.order(TriggerKind.ROTATE, "ann", "cara")
    agent = Agent(host, service, tools=Slow(host.prefix))
    report = agent.pass_()
    assert report.outcomes == ()
    assert agent.rotator.unended == "ann"
    assert [each.user for each in service.candidates.values()] == ["ann"]
    agent = Agent(host, service)
    assert [each.error for each in agent.pass_().outcomes] == [""]
    assert in_force(host) == service.current["ann"][1]
    assert host.users()["cara"].password == service.current["cara"][1]
    assert not service.candidates


@needs_shadow
def test_an_order_without_users(host: Host, service: Service) -> None:
    """An order for no users is not reported as done."""
    service.want(ANN)
    service.order(TriggerKind.ROTATE)
    assert [each.error for each in Agent(host, service).pass_().outcomes] == ["it names nobody"]


@needs_shadow
def test_each_rotation_is_a_sign_of_life(host: Host, service: Service) -> None:
    """Each rotation reports to systemd that the agent is alive. Otherwise systemd would restart an agent that rotates
    many passwords.
    """
    names = ("ann", "ben", "cid")
    service.want(*(DesiredUser(name, password_hash=HASH) for name in names))
    agent = Agent(host, service)
    agent.pass_()
    before = agent.signs_of_life
    service.order(TriggerKind.ROTATE, *names)
    agent.pass_()
    assert agent.signs_of_life - before >= len(names)
