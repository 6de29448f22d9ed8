"""A probe of the delay that a tenant notices. It sends a recorded PAP login and a Status-Server every 0.1 s.

    with Probe(service, secret, source="127.0.0.2", user="ann", password="hello") as probe:
        ...
    slowest = max(probe.results, key=lambda each: each.delay_s)

The probe is a separate process, so that the work of the test does not delay it. The kernel records when an answer
arrives. Therefore the time for which the probe waits for a processor is not part of the delay. The processor time that
the service used in the meantime shows whether the service or the machine was busy.

The processor of a virtual machine may be several times slower for a minute, because others use it too. So the probe
also measures the processor time of a fixed piece of work every 0.1 s.
"""

import socket
import struct
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from sallyport.radius.packet import ACCESS_ACCEPT, STATUS_SERVER, PacketError, decode_reply, encode_request
from tests.measuring import Measuring
from tests.radius_client import RadiusClient
from tests.running_service import RunningService

EVERY_S = 0.1
LOST_S = 5.0
"""The delay that a request without an answer counts as."""
WORK_S = 0.00034
"""The processor time of the fixed piece of work on the machine for which the limit of a delay was chosen."""
SAMPLES = 5
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h
_TIMESTAMP = struct.Struct("@ll")


@dataclass(frozen=True)
class Answer:
    """A request of the probe.

    sent_at: the time in seconds since the epoch. worked_s: the processor time that the service used until the answer
    was read. waited_s: the time for which threads of the service meanwhile waited for a processor. slowness: how much
    longer than WORK_S the fixed piece of work took, in the last SAMPLES measurements; at least 1. began: the time in
    seconds of the monotonic clock.
    """

    kind: str
    sent_at: float
    delay_s: float
    worked_s: float
    slowness: float = 1.0
    waited_s: float = 0.0
    began: float = 0.0


class Probe(Measuring[Answer]):
    """A probe that runs until the block ends."""

    def __init__(self, service: RunningService, secret: str, *, source: str, user: str, password: str) -> None:
        super().__init__(_run, service.ports.auth, service.process_id, secret, source, user, password)


@dataclass(frozen=True)
class _Waiting:
    """A request that has no answer yet."""

    kind: str
    packet: bytes
    sent_at: float
    work_s: float
    wait_s: float
    began: float = 0.0

    def answered(self, delay_s: float, work_s: float, wait_s: float, slowness: float = 1.0) -> Answer:
        """Return the request with the delay of its answer, the processor time that the service used and waited for,
        and the slowness of the machine."""
        waited_s = max(0.0, wait_s - self.wait_s)
        return Answer(self.kind, self.sent_at, delay_s, work_s - self.work_s, slowness, waited_s, self.began)


def _run(pipe: Connection, port: int, process: int, secret: str, source: str, user: str, password: str) -> None:
    """Run the probe until the pipe has a message, then send the answers over the pipe."""
    with RadiusClient(port, secret, source=source) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        requests = _Requests(client, (user, password), process)
        requests.send()
        requests.receive(until=time.time() + LOST_S, all_of_them=True)
        pipe.send("ready")
        requests.answers.clear()
        while not pipe.poll():
            due = time.time() + EVERY_S
            requests.send()
            requests.receive(until=due)
        requests.receive(until=time.time() + LOST_S, all_of_them=True)
        pipe.send([*requests.answers, *requests.lost()])


class _Requests:
    """The requests of the probe, and their results."""

    def __init__(self, client: RadiusClient, login: tuple[str, str], process: int) -> None:
        self._client = client
        self._login = login
        self._processor_clock = ~process << 3 | 2  # clock_getcpuclockid(3)
        self._threads = Path(f"/proc/{process}/task")
        self._waiting: dict[int, _Waiting] = {}
        self._slowness = deque([1.0], SAMPLES)
        self.answers: list[Answer] = []

    def send(self) -> None:
        """Send a login and a Status-Server, and measure the machine."""
        self._slowness.append(slowness())
        login = self._client.packet(*self._login, NAS_IDENTIFIER=b"probe")
        status = encode_request(STATUS_SERVER, (login[1] + 128) & 0xFF, self._client.secret, b"")
        for kind, packet in (("login", login), ("status", status)):
            if (lost := self._waiting.get(packet[1])) is not None:
                self.answers.append(lost.answered(LOST_S, self._work_s(), self._wait_s()))
            used = self._work_s(), self._wait_s()
            self._waiting[packet[1]] = _Waiting(kind, packet, time.time(), *used, time.monotonic())
            self._client.send(packet)

    def receive(self, *, until: float, all_of_them: bool = False) -> None:
        """Receive answers until a time.

        all_of_them: whether to end earlier if every request has its answer.
        """
        sock = self._client.sock
        while (left := until - time.time()) > 0 and not (all_of_them and not self._waiting):
            sock.settimeout(left)
            try:
                reply, notes, _, _ = sock.recvmsg(4096, socket.CMSG_SPACE(_TIMESTAMP.size))
            except TimeoutError:
                return
            request = self._waiting[reply[1]]
            try:
                assert decode_reply(reply, request.packet, self._client.secret)[0] == ACCESS_ACCEPT
            except PacketError:  # a late answer to a former request with this identifier, which counts as lost
                continue
            del self._waiting[reply[1]]
            seconds, nanoseconds = _TIMESTAMP.unpack(notes[0][2])
            delay_s, slow = seconds + nanoseconds / 1e9 - request.sent_at, max(1.0, median(self._slowness))
            self.answers.append(request.answered(delay_s, self._work_s(), self._wait_s(), slow))

    def lost(self) -> list[Answer]:
        """Return the requests without an answer."""
        return [each.answered(LOST_S, self._work_s(), self._wait_s()) for each in self._waiting.values()]

    def _work_s(self) -> float:
        return time.clock_gettime(self._processor_clock)

    def _wait_s(self) -> float:
        waited = 0
        for path in self._threads.glob("*/schedstat"):  # Documentation/scheduler/sched-stats.rst of Linux
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
                waited += int(path.read_text().split()[1])
        return waited / 1e9


def slowness() -> float:
    """Return how much longer than WORK_S a fixed piece of work takes on this machine now, in processor time."""
    began = time.thread_time()
    table = {number: str(number) for number in range(4000)}
    assert sum(map(len, table.values())) == 14_890
    return (time.thread_time() - began) / WORK_S
