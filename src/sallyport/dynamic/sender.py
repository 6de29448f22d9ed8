"""One request to a NAS, and its answer: over UDP, repeated by the timers of RFC 5080 section 2.2.1.

Each request has a socket of its own, so that identifiers never run out. Few are under way to one NAS at a time. Where
one of them had no answer to the end, those that have waited behind it are not sent: a NAS that is away would otherwise
hold a hundred sessions up for as many half minutes.
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
from sallyport.radius.authenticator import SharedSecret
from sallyport.radius.dynamic import Kind, decode, encode
from sallyport.radius.packet import MAX_LENGTH
from sallyport.radius.retransmission import RFC_5080, Retransmission, Timers

AT_ONCE: Final = 4  # to one NAS


class RequestOutcome(StrEnum):
    """What came of a request. timeout: nothing was heard; it may have been obeyed. unreachable: it was not sent."""

    ACK = "ack"
    NAK = "nak"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    UNKNOWN_CLIENT = "unknown client"


@dataclass(frozen=True, slots=True)
class Answer:
    """error_cause: RFC 5176 section 3.5. trouble: why there is no answer, for a person. latency_s: from the first
    transmission to the answer."""

    outcome: RequestOutcome
    error_cause: int | None = None
    trouble: str = ""
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Nas:
    """Where a request goes. address: an IP address in text."""

    address: str
    port: int
    secret: SharedSecret


class _Line:
    """The requests to one NAS. callers: who asks or waits to. silent_at: when one was last given up, unless another
    was answered since."""

    __slots__ = ("callers", "limiter", "silent_at")

    def __init__(self) -> None:
        self.callers = 0
        self.limiter = trio.CapacityLimiter(AT_ONCE)
        self.silent_at = -math.inf


class Sender:
    """Asks NASes."""

    def __init__(self, egress: Egress, *, timers: Timers = RFC_5080, clock: Clock = now_us) -> None:
        self._egress = egress
        self._timers = timers
        self._clock = clock
        self._lines: dict[tuple[str, int], _Line] = {}

    async def ask(self, nas: Nas, kind: Kind, attributes: bytes) -> Answer:
        """Send a request until it is answered or given up. attributes: up to radius.dynamic.ROOM octets."""
        try:
            self._egress.check(nas.address, [nas.address])
        except ProviderError as error:
            return Answer(RequestOutcome.UNREACHABLE, trouble=str(error))
        asked_at = trio.current_time()
        with self._line(nas) as line:
            async with line.limiter:
                if line.silent_at >= asked_at:
                    return Answer(RequestOutcome.TIMEOUT, trouble="not sent: it did not answer to others")
                packet = encode(kind, randbelow(256), nas.secret, attributes, at=self._clock() // SECOND)
                answer = await self._exchange(nas, packet)
                line.silent_at = trio.current_time() if answer.outcome is RequestOutcome.TIMEOUT else -math.inf
                return answer

    @contextmanager
    def _line(self, nas: Nas) -> Iterator[_Line]:
        key = (nas.address, nas.port)
        line = self._lines.setdefault(key, _Line())
        line.callers += 1
        try:
            yield line
        finally:
            line.callers -= 1
            if not line.callers:
                del self._lines[key]

    async def _exchange(self, nas: Nas, packet: bytes) -> Answer:
        v6 = ipaddress.ip_address(nas.address).version == 6
        try:
            with trio.socket.socket(trio.socket.AF_INET6 if v6 else trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as udp:
                await udp.connect((nas.address, nas.port))
                return await self._talk(udp, packet, nas.secret)
        except OSError as error:
            return Answer(RequestOutcome.UNREACHABLE, trouble=error.strerror or type(error).__name__)

    async def _talk(self, udp: trio.socket.SocketType, packet: bytes, secret: SharedSecret) -> Answer:
        """OSError: there is no way to the NAS."""
        begun, trouble = trio.current_time(), "no answer"
        trying = Retransmission(begun, self._timers)
        while not trying.is_over(now := trio.current_time()):
            if trying.is_due(now):
                await _send(udp, packet)
                trying.note_sent(now)
            with trio.move_on_at(trying.next_at):
                try:
                    reply = decode(await udp.recv(MAX_LENGTH + 1), packet, secret)
                except ConnectionRefusedError:  # it may be starting anew
                    trouble = "nobody listens there"
                except PacketError as error:  # perhaps somebody else's: the real one may still come
                    trouble = f"what came does not hold: {error}; check the secret"
                else:
                    outcome = RequestOutcome.ACK if reply.acknowledged else RequestOutcome.NAK
                    return Answer(outcome, reply.error_cause, latency_s=trio.current_time() - begun)
        return Answer(RequestOutcome.TIMEOUT, trouble=trouble)


async def _send(udp: trio.socket.SocketType, packet: bytes) -> None:
    """An error may be about what was sent before; then nothing was sent now."""
    for _ in range(2):
        with suppress(ConnectionRefusedError):
            await udp.send(packet)
            return
