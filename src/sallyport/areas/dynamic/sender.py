"""Send a request to a NAS over UDP and receive the answer, with the retransmission timers of RFC 5080 section 2.2.1.

Each request has its own socket, so that identifiers never run out. Only a few requests to one NAS run at the same time.
If one of them gets no answer, the requests that wait behind it are not sent. Otherwise a silent NAS would delay a
hundred sessions by half a minute each.
"""

import ipaddress
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from secrets import randbelow
from typing import Final

import trio

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import PacketError
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.radius.dynamic import RequestKind, decode, encode
from sallyport.radius.packet import MAX_LENGTH, SharedSecret
from sallyport.radius.retransmission import RFC_5080, Retransmission, Timers

AT_ONCE: Final = 4  # to one NAS


class RequestOutcome(StrEnum):
    """The outcome of a request. `timeout`: no answer came, and the NAS may have acted or not. `unreachable`: the
    request was not sent."""

    ACK = "ack"
    NAK = "nak"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    UNKNOWN_CLIENT = "unknown client"


@dataclass(frozen=True, slots=True)
class NasAnswer:
    """The result of a request.

    error_cause: the value of Error-Cause (RFC 5176 section 3.5), or None. problem: the reason why no answer came, in
    words. latency_s: the time from the first transmission to the answer, in seconds.
    """

    outcome: RequestOutcome
    error_cause: int | None = None
    problem: str = ""
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Nas:
    """The address, port and secret to which a request is sent. address: an IP address as text."""

    address: str
    port: int
    secret: SharedSecret


class _Queue:
    """The requests to one NAS. callers: the number of requests that run or wait. silent_at: if the last request ended
    with a timeout, the time of this timeout, otherwise -inf."""

    __slots__ = ("callers", "limiter", "silent_at")

    def __init__(self) -> None:
        self.callers = 0
        self.limiter = trio.CapacityLimiter(AT_ONCE)
        self.silent_at = -math.inf


class Sender:
    """The sender of requests to NASes. timers: the times between retransmissions."""

    def __init__(self, egress: Egress, *, timers: Timers = RFC_5080, clock: Clock = now_us) -> None:
        self._egress = egress
        self._timers = timers
        self._clock = clock
        self._queues: dict[tuple[str, int], _Queue] = {}

    async def ask(self, nas: Nas, kind: RequestKind, attributes: bytes) -> NasAnswer:
        """Send a request, and retransmit it until an answer arrives or the time is over. attributes: the encoded
        attributes, at most radius.dynamic.ROOM octets."""
        try:
            self._egress.check(nas.address, [nas.address])
        except ProviderError as error:
            return NasAnswer(RequestOutcome.UNREACHABLE, problem=str(error))
        asked_at = trio.current_time()
        with self._queue(nas) as queue:
            async with queue.limiter:
                if queue.silent_at >= asked_at:
                    return NasAnswer(
                        RequestOutcome.TIMEOUT, problem="not sent, because the NAS did not answer other requests"
                    )
                packet = encode(kind, randbelow(256), nas.secret, attributes, at=self._clock() // SECOND)
                answer = await self._exchange(nas, packet)
                queue.silent_at = trio.current_time() if answer.outcome is RequestOutcome.TIMEOUT else -math.inf
                return answer

    @contextmanager
    def _queue(self, nas: Nas) -> Iterator[_Queue]:
        key = (nas.address, nas.port)
        queue = self._queues.setdefault(key, _Queue())
        queue.callers += 1
        try:
            yield queue
        finally:
            queue.callers -= 1
            if not queue.callers:
                del self._queues[key]

    async def _exchange(self, nas: Nas, packet: bytes) -> NasAnswer:
        v6 = ipaddress.ip_address(nas.address).version == 6
        try:
            with trio.socket.socket(trio.socket.AF_INET6 if v6 else trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as udp:
                await udp.connect((nas.address, nas.port))
                return await self._converse(udp, packet, nas.secret)
        except OSError as error:
            return NasAnswer(RequestOutcome.UNREACHABLE, problem=error.strerror or type(error).__name__)

    async def _converse(self, udp: trio.socket.SocketType, packet: bytes, secret: SharedSecret) -> NasAnswer:
        """Send the packet, retransmit it, and return the answer. Raises OSError if there is no route to the NAS."""
        begun, problem = trio.current_time(), "no answer"
        trying = Retransmission(begun, self._timers)
        while not trying.is_over(now := trio.current_time()):
            if trying.is_due(now):
                await _send(udp, packet)
                trying.note_sent(now)
            with trio.move_on_at(trying.next_at):
                try:
                    reply = decode(await udp.recv(MAX_LENGTH + 1), packet, secret)
                except ConnectionRefusedError:  # the NAS may be restarting
                    problem = "no program listens on this port"
                except PacketError as error:  # this answer may be forged, and the authentic answer may still arrive
                    problem = f"the answer failed verification: {error}; check the secret"
                else:
                    outcome = RequestOutcome.ACK if reply.acknowledged else RequestOutcome.NAK
                    return NasAnswer(outcome, reply.error_cause, latency_s=trio.current_time() - begun)
        return NasAnswer(RequestOutcome.TIMEOUT, problem=problem)


async def _send(udp: trio.socket.SocketType, packet: bytes) -> None:
    """Send a packet. If the socket reports an error of an earlier packet instead, send the packet again."""
    for _ in range(2):
        with suppress(ConnectionRefusedError):
            await udp.send(packet)
            return
