"""The loop: when it asks, acts and tells; a service that is away, says no, or answers rubbish; told to end."""

import itertools
import os
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sallyport.agent.endpoint.daemon import Daemon, Environment, Stop, Stopped, enrolled
from sallyport.agent.endpoint.identity import Identity, Known
from sallyport.agent.service import BackOff
from sallyport.base.agentwire.fields import MAX_REPORT
from sallyport.base.agentwire.report import Poll
from sallyport.base.agentwire.state import DesiredUser, Settings, TriggerKind
from sallyport.base.clock import SECOND
from sallyport.base.errors import ServiceAway, ServiceRefused, WireError
from sallyport.base.notify import Notifier
from sallyport.base.wire import dumps
from tests.agent.endpoint.host import HASH, NOW, Agent, Host, Service, bare_host, needs_shadow

pytestmark = needs_shadow


@dataclass
class World:
    """An agent's loop with a clock that waiting moves on. waits: what it has waited between requests, in seconds;
    polls: what it has asked."""

    host: Host
    service: "Recording"
    said: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.stop = Stop()
        environment = Environment(Notifier({}), self.stop, lambda: self.now_s, self.pause, self.said.append)
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
    """A service whose answers without news take as long as they may."""

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


def test_asks_acts_tells(world: World) -> None:
    """The first request does not wait; news are acted upon and told at once, and then it waits for the next."""
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


def test_a_pass_from_time_to_time(world: World) -> None:
    """Without news the host is looked at as often as the settings say, and what somebody removed is there again."""
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


def test_a_service_that_is_away(world: World) -> None:
    """It is asked more and more rarely, and told once it is there; meanwhile an account expires on time."""
    world.service.want(DesiredUser("ann", expires=NOW + 20 * SECOND))
    world.daemon.turn()
    world.service.away = True
    for _ in range(8):
        world.daemon.turn()
    assert world.host.users()["ann"].locked
    assert world.waits[:5] == [1, 2, 4, 8, 5]
    assert world.said.count("no route to host") == 1
    world.service.away = False
    world.daemon.turn()
    assert "the service answers again" in world.said
    assert [action.kind for action in world.service.reports[-1].actions] == ["lock", "sessions", "keys"]
    world.waits.clear()
    world.service.away = True
    world.daemon.turn()
    assert world.waits[0] == 1


@pytest.mark.parametrize("answer", [[], "", {"payload": "x"}, {"payload": "e30=", "signature": "e30="}, None])
def test_a_service_that_answers_rubbish(world: World, answer: object) -> None:
    """Rubbish is like no answer: the state at hand holds, and the loop goes on."""
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


def test_a_key_that_is_refused(world: World) -> None:
    """A revoked key is told in the log, and asked with again only after a while; the host stays as it is."""
    world.service.want(DesiredUser("ann"))
    world.daemon.turn()
    world.service.refuses = True
    world.daemon.turn()
    world.daemon.turn()
    assert world.waits == [1, 2]
    assert "the service refuses the agent: invalid token" in world.said
    assert "ann" in world.host.users()


def test_an_order_that_the_service_stopped(world: World) -> None:
    """A rotation that could not be escrowed is tried again soon, without waiting for news."""
    world.service.want(DesiredUser("ann"))
    world.daemon.turn()
    world.service.order(TriggerKind.ROTATE, "ann")
    rotation = world.service.rotation

    def away(message: object) -> None:
        raise ServiceAway("busy")

    world.service.rotation = away  # type: ignore[method-assign, assignment]
    world.daemon.turn()
    world.service.rotation = rotation  # type: ignore[method-assign]
    world.daemon.turn()
    assert world.service.polls[-1].wait_s == 5
    assert world.service.current["ann"]
    assert not world.agent.endpoint.is_unfinished


def test_once(world: World) -> None:
    """Exit code 0 when everything was done, 1 when not; without the service the state at hand is made to hold."""
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


def test_told_to_end(world: World) -> None:
    """A signal ends the waiting at once, and what is being done to the host only when it is done."""
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
    """Asked for while something is done, it ends the next waiting."""
    stop = Stop()
    stop.ask()
    with pytest.raises(Stopped), stop.waiting():
        raise AssertionError("it waits")


def test_systemd_is_told(tmp_path: Path) -> None:
    """READY at the beginning, WATCHDOG while it waits, STATUS with numbers, STOPPING at the end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        world = World(bare_host(tmp_path / "host"), Recording())
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000000"}
        environment = Environment(Notifier(environ), world.stop, lambda: world.now_s, world.pause, world.said.append)
        daemon = Daemon(world.agent.endpoint, world.service, None, environment)
        world.service.want(DesiredUser("ann"))
        daemon.turn()
        world.stop.ask()
        daemon.run()
        told = b"\n".join(_received(sock))
    assert b"STATUS=1 account, 0 failures" in told
    for word in (b"READY=1", b"WATCHDOG=1", b"STOPPING=1"):
        assert word in told


def _received(sock: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(sock.recv(1000))
        except BlockingIOError:
            return found


def test_enrolment_waits_for_the_service(tmp_path: Path) -> None:
    """The daemon waits until the service says who it is; `--once` does not; being told to end ends it."""
    answers: list[Identity | Exception] = [ServiceAway("away"), Identity(tmp_path, Known(7, "A" * 43 + "="))]
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


def test_reports_fit_into_what_the_service_takes(world: World) -> None:
    """However many users fail, and however long the reasons are."""
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


def test_a_rotation_that_is_not_confirmed(world: World) -> None:
    """A service that declines the password in force is given another one, but later each time; the reports say why, and
    once it confirms, the order has its outcome."""
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


def test_a_rotation_that_is_not_confirmed_keeps_no_other(world: World) -> None:
    """What was ordered for another user is done."""
    world.service.want(DesiredUser("ann", password_hash=HASH), DesiredUser("ben", password_hash=HASH))
    world.daemon.turn()
    world.service.loses_of = {"ann"}
    world.service.order(TriggerKind.ROTATE, "ann")
    world.service.order(TriggerKind.ROTATE, "ben")
    world.daemon.turn()
    assert world.service.current["ben"][1] == world.host.users()["ben"].password
    assert [each.trigger for each in world.service.reports[-1].outcomes] == [2]
