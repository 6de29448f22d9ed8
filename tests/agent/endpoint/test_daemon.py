"""The agent's loop: polls, changes, reports, failures of the service, and the end by a signal."""

import itertools
import os
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sallyport.agent.endpoint.daemon import Daemon, Environment, Stop, Stopped, enrolled
from sallyport.agent.endpoint.identity import Identity, StoredIdentity
from sallyport.agentwire.fields import MAX_REPORT
from sallyport.agentwire.report import Poll
from sallyport.agentwire.state import DesiredUser, Settings, TriggerKind
from sallyport.base.clock import SECOND, BackOff
from sallyport.base.errors import ServiceAway, ServiceRefused, WireError
from sallyport.base.wire import dumps
from sallyport.host.notify import Notifier
from tests.agent.endpoint.host import HASH, NOW, Agent, Host, Service, bare_host, needs_shadow

pytestmark = needs_shadow


@dataclass
class World:
    """The loop of an agent, and a clock that each wait advances.

    waits: the waits of the loop between requests, in seconds. polls: the requests of the loop.
    """

    host: Host
    service: "Recording"
    logged: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.stop = Stop()
        environment = Environment(Notifier({}), self.stop, lambda: self.now_s, self.pause, self.logged.append)
        self.agent = Agent(self.host, self.service)
        self.service.world = self
        self.daemon = Daemon(self.agent.endpoint, self.service, None, environment, BackOff(chance=lambda: 0.0))

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.host.wall += int(seconds * SECOND)
        self.host.since_boot += int(seconds * SECOND)


class Recording(Service):
    """A service that records the polls. If there is no new state, a poll lasts for its maximum time."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None
        self.polls: list[Poll] = []
        self.refuses = False

    def state(self, poll: Poll) -> object:
        self.polls.append(poll)
        if self.refuses:
            raise ServiceRefused("invalid token", 401)
        answer = super().state(poll)
        if answer == {"unchanged": True} and self.world is not None:
            self.world.pass_time(poll.wait_s)
        return answer


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(bare_host(tmp_path), Recording())


def test_a_poll_a_change_and_a_report(world: World) -> None:
    """The first poll does not wait. The loop applies and reports a new state at once, then waits for the next one."""
    world.service.want(DesiredUser("ann"))
    world.daemon.turn()
    assert "ann" in world.host.users()
    assert len(world.service.reports) == len(world.service.statuses) == 1
    assert world.service.reports[0].discovery is not None
    world.daemon.turn()
    world.service.want(DesiredUser("ben"))
    world.daemon.turn()
    assert [poll.wait_s for poll in world.service.polls] == [0, 25, 25]
    assert "ben" in world.host.users()
    assert "ann" not in world.host.users()
    assert world.waits == []


def test_regular_checks(world: World) -> None:
    """Without a new state the host is checked at the configured interval. A file that was removed by hand is written
    again.
    """
    world.service.want(DesiredUser("ann"), settings=Settings(privilege_s=60))
    world.daemon.turn()
    passwd = world.host.path("/etc/passwd")
    passwd.write_text("".join(line for line in passwd.read_text().splitlines(True) if not line.startswith("ann:")))
    for _ in range(3):
        world.daemon.turn()
    assert world.now_s == 60
    assert [poll.wait_s for poll in world.service.polls[1:]] == [25, 25, 10]
    assert "ann" in world.host.users()
    assert len(world.service.reports) == 2
    assert world.service.reports[1].discovery is None


def test_an_unreachable_service(world: World) -> None:
    """The agent polls an unreachable service at growing intervals, and sends the reports when it is reachable again.

    Meanwhile an account expires on time.
    """
    world.service.want(DesiredUser("ann", expires=NOW + 20 * SECOND))
    world.daemon.turn()
    world.service.away = True
    for _ in range(8):
        world.daemon.turn()
    assert world.host.users()["ann"].locked
    assert world.waits[:5] == [1, 2, 4, 8, 5]
    assert world.logged.count("no route to host") == 1
    world.service.away = False
    world.daemon.turn()
    assert "the service answers again" in world.logged
    assert [action.kind for action in world.service.reports[-1].actions] == ["lock", "sessions", "keys"]
    world.waits.clear()
    world.service.away = True
    world.daemon.turn()
    assert world.waits[0] == 1


@pytest.mark.parametrize("answer", [[], "", {"payload": "x"}, {"payload": "e30=", "signature": "e30="}, None])
def test_malformed_answers(world: World, answer: object) -> None:
    """A malformed answer is ignored: the last state stays in force, and the loop continues."""
    world.service.want(DesiredUser("ann"))
    world.daemon.turn()
    shadow = world.host.path("/etc/shadow").read_bytes()
    world.service.garbled = answer if answer is not None else 1
    world.daemon.turn()
    assert world.waits == [1]
    assert world.host.path("/etc/shadow").read_bytes() == shadow
    world.service.garbled = None
    world.service.want()
    world.daemon.turn()
    assert "ann" not in world.host.users()


def test_a_refused_key(world: World) -> None:
    """If its key is revoked, the agent logs this and waits before it tries the key again. The host stays unchanged."""
    world.service.want(DesiredUser("ann"))
    world.daemon.turn()
    world.service.refuses = True
    world.daemon.turn()
    world.daemon.turn()
    assert world.waits == [1, 2]
    assert "the service refuses the agent: invalid token" in world.logged
    assert "ann" in world.host.users()


def test_a_rotation_without_escrow_is_retried(world: World) -> None:
    """A rotation whose password could not be escrowed is soon tried again, without a new state."""
    world.service.want(DesiredUser("ann"))
    world.daemon.turn()
    world.service.order(TriggerKind.ROTATE, "ann")
    rotation = world.service.rotation

    def unreachable(message: object) -> None:
        raise ServiceAway("busy")

    world.service.rotation = unreachable  # type: ignore[method-assign, assignment]
    world.daemon.turn()
    world.service.rotation = rotation  # type: ignore[method-assign]
    world.daemon.turn()
    assert world.service.polls[-1].wait_s == 5
    assert world.service.current["ann"]
    assert not world.agent.endpoint.is_unfinished


def test_once(world: World) -> None:
    """The exit status of `--once` is 0 if every step succeeded, else 1.

    If the service is unreachable, the last state is applied.
    """
    world.service.want(DesiredUser("ann"))
    assert world.daemon.once() == 0
    world.service.want(DesiredUser("ann"), DesiredUser("root"))
    assert world.daemon.once() == 1
    world.service.away = True
    with pytest.raises(ServiceAway):
        world.daemon.once()
    world.service.away, world.service.garbled = False, []
    with pytest.raises(WireError):
        world.daemon.once()


def test_a_signal_ends_the_loop(world: World) -> None:
    """A signal ends a wait at once. A change of the host in progress is completed first."""
    world.stop.listen()
    try:
        with pytest.raises(Stopped), world.stop.waiting():
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        assert world.stop.asked
        with pytest.raises(Stopped):
            world.daemon.turn()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_signal_between_two_waits_is_not_lost() -> None:
    """A signal during a change ends the next wait."""
    stop = Stop()
    stop.ask()
    with pytest.raises(Stopped), stop.waiting():
        raise AssertionError("it waits")


def test_messages_to_systemd(tmp_path: Path) -> None:
    """systemd receives READY at the start, WATCHDOG during waits, STATUS with numbers, and STOPPING at the end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        world = World(bare_host(tmp_path / "host"), Recording())
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000000"}
        environment = Environment(Notifier(environ), world.stop, lambda: world.now_s, world.pause, world.logged.append)
        daemon = Daemon(world.agent.endpoint, world.service, None, environment)
        world.service.want(DesiredUser("ann"))
        daemon.turn()
        world.stop.ask()
        daemon.run()
        received = b"\n".join(_received(sock))
    assert b"STATUS=1 account, 0 failures" in received
    for word in (b"READY=1", b"WATCHDOG=1", b"STOPPING=1"):
        assert word in received


def _received(sock: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(sock.recv(1000))
        except BlockingIOError:
            return found


def test_enrolment_waits_for_the_service(tmp_path: Path) -> None:
    """The daemon waits until the service answers its enrolment, and `--once` does not wait. A signal ends the wait."""
    answers: list[Identity | Exception] = [ServiceAway("away"), Identity(tmp_path, StoredIdentity(7, "A" * 43 + "="))]
    waits: list[float] = []
    stop = Stop()
    environment = Environment(Notifier({}), stop, lambda: 0.0, waits.append, lambda text: None)

    def enrol() -> Identity:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    known = enrolled(enrol, environment, patient=True)
    assert known is not None
    assert known.instance == 7
    assert len(waits) == 1
    answers[:] = [ServiceAway("away")]
    with pytest.raises(ServiceAway):
        enrolled(enrol, environment, patient=False)
    stop.ask()
    assert enrolled(enrol, environment, patient=True) is None


def test_reports_stay_within_the_limits(world: World) -> None:
    """A report stays within the service's limits, even if many users fail with long reasons."""
    long = tuple(f"{'g' * 28}{number:03}" for number in range(64))
    users = [DesiredUser(f"user{number}", home="/etc/x", groups=long) for number in range(1000)]
    world.service.want(*users)
    world.daemon.turn()
    assert len(world.service.reports[0].actions) == 1001
    passwd = world.host.path("/etc/passwd")
    passwd.write_text(passwd.read_text() + "".join(f"x{n}:x:0:0::/:/bin/sh\n" for n in range(200)))
    many = "".join(f"{'%root, ' * 9}ALL ALL=(ALL) {'/bin/x, ' * 30}/bin/{n}\n" for n in range(64))
    world.host.path("/etc/sudoers.d/many").write_text(many)
    world.service.order(TriggerKind.DISCOVER)
    world.daemon.turn()
    assert len(dumps(world.service.reports[-1])) <= MAX_REPORT
    assert len(dumps(world.service.statuses[-1])) <= MAX_REPORT
    assert world.service.statuses[-1].privileged


def test_an_unconfirmed_rotation(world: World) -> None:
    """If the service does not confirm the password in force, the agent makes another one, after a longer wait each
    time. The reports contain the reason. A confirmation completes the order.
    """
    world.service.want(DesiredUser("ann", password_hash=HASH))
    world.daemon.turn()
    world.service.loses_of = {"ann"}
    world.service.order(TriggerKind.ROTATE, "ann")
    tried = []
    while world.now_s < 3600:
        before = len(world.service.known.get("ann", ()))
        world.daemon.turn()
        if len(world.service.known["ann"]) > before:
            tried.append(world.now_s)
    gaps = [later - sooner for sooner, later in itertools.pairwise(tried)]
    assert gaps[:6] == [5, 10, 20, 40, 80, 160]
    assert len(tried) < 20
    assert "rotation not found" in world.service.reports[-1].actions[-1].error
    assert world.host.users()["ann"].password in world.service.known["ann"]
    world.service.loses_of = set()
    for _ in range(30):
        world.daemon.turn()
    assert world.service.current["ann"][1] == world.host.users()["ann"].password
    assert [each.error for each in world.service.reports[-1].outcomes] == [""]


def test_an_unconfirmed_rotation_stops_no_other(world: World) -> None:
    """If the rotation of one user is not confirmed, the order continues for the other users."""
    world.service.want(DesiredUser("ann", password_hash=HASH), DesiredUser("ben", password_hash=HASH))
    world.daemon.turn()
    world.service.loses_of = {"ann"}
    world.service.order(TriggerKind.ROTATE, "ann")
    world.service.order(TriggerKind.ROTATE, "ben")
    world.daemon.turn()
    assert world.service.current["ben"][1] == world.host.users()["ben"].password
    assert [each.trigger for each in world.service.reports[-1].outcomes] == [2]
