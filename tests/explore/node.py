"""A node of an exploration: the second factor of the service, and a small form of what surrounds it in a login."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import trio
from prometheus_client import CollectorRegistry

from sallyport.areas.clients.client import Client
from sallyport.areas.devices.device import Device
from sallyport.areas.domains.domain import Domain, Mode
from sallyport.areas.factors.denials import Denial, Denials, DeniedAt
from sallyport.areas.factors.pauses.repo import Pause, Person
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.login.login import Login, Reason, Verdict
from sallyport.areas.login.second.calls import Calls
from sallyport.areas.login.second.challenges import Challenges
from sallyport.areas.login.second.conversation import SecondFactorResult
from sallyport.areas.login.second.service import SecondFactor
from sallyport.areas.login.second.session import Asked
from sallyport.areas.login.second.shared import SharedCalls, SharedChallenges
from sallyport.areas.login.second.web_limits import WebLimits
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.provider import Code as TypedCode
from sallyport.areas.policy.attempt import Arrival
from sallyport.base.errors import PacketError, StoreError
from sallyport.base.secret import Secret
from sallyport.metrics import MfaMetrics, PauseMetrics
from sallyport.nodes.notices import NoNotices
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import SharedSecret, decode
from sallyport.radius.password import Method
from sallyport.store.model import Tx
from sallyport.store.vault import Vault
from tests.areas import SECRET
from tests.explore.phone import Phone, Provider
from tests.explore.store import FAILS, Database, NodeStore, Park
from tests.packets import attributes, pap

TIMEOUT_S: Final = 1000.0
"""Time limit of a prompt. It exceeds the steps of the clock that an exploration can make before it."""
DOMAIN: Final = Domain(id=1, tenant_id=1, name="corp", mode=Mode.ENFORCE)
SOURCE: Final = ("192.0.2.1", 1812)
_SESSION: Final = attributes(CALLING_STATION_ID=b"02-00-00-00-00-01", ACCT_SESSION_ID=b"session 1")
_VAULT: Final = Vault(Secret(bytes(32)))
_METRICS: Final = MfaMetrics(CollectorRegistry())
_PAUSE_METRICS: Final = PauseMetrics(CollectorRegistry())
_CLIENT: Final = Client(
    id=1,
    tenant_id=1,
    name="nas",
    network="192.0.2.1",
    secret=SECRET,
    all_domains=1,
    domain_ids=(),
    product="",
    require_message_authenticator="no",
    limit_proxy_state="no",
    password_verified=0,
    signed_since=None,
    proxy_state_limited_since=None,
)


@dataclass(frozen=True, slots=True)
class Code:
    """The classes of the service that a node runs. With `EMBEDDED`, a node keeps the prompts in its memory."""

    second: type[SecondFactor] = SecondFactor
    calls: type[SharedCalls] | None = SharedCalls
    challenges: type[Challenges] = SharedChallenges


CODE: Final = Code()
EMBEDDED: Final = Code(calls=None, challenges=Challenges)


@dataclass(frozen=True, slots=True)
class Packet:
    """A request of the device. challenge, step: the challenge that it answers, or empty for the first request of a
    login. code: the text that the user has typed."""

    number: int
    challenge: str = ""
    step: int = 0
    code: str = ""


class _NoPauses(Pauses):
    """Users without pauses: limits of prompts are another subject."""

    def find(self, tx: Tx, person: Person) -> Pause | None:
        return None

    async def read(self, person: Person) -> Pause | None:
        return None

    async def count_unanswered(self, person: Person, name: str) -> None:
        return None


class _PromptDenials(Denials):
    """Denials that end prompts and challenges only."""

    async def deny(self, denial: Denial, done: Callable[[], None] = lambda: None) -> None:
        await self._store.write_aside(partial(self.end_prompts, denial=denial, done=done))  # type: ignore[attr-defined]
        for after in self._after:
            after(denial)

    def end_prompts(self, tx: Tx, denial: Denial, done: Callable[[], None]) -> None:
        """End what the second factor has registered. done: called in the transaction."""
        for write in self._writes:
            write(tx, denial)
        done()


class _Providers:
    """The provider of the domain."""

    def __init__(self, attached: Attached) -> None:
        self._attached = attached

    def of(self, domain_id: int, name: str = "") -> Attached:
        return self._attached


class _Listener:
    """The listener of a login, which the second factor does not use."""

    number = 0


class Node:
    """One node. answers: what became of each packet: pending, superseded, or the verdict that was sent. code: the
    code that the node runs. stored: called in the transaction of each answer. sent: called
    after it, when the answer is sent. can_show_challenges: whether the device gets a challenge at once."""

    def __init__(
        self,
        name: str,
        database: Database,
        phone: Phone,
        park: Park,
        clock: Callable[[], int],
        code: Code,
        stored: Callable[[Packet, Verdict, SecondFactorResult], None],
        sent: Callable[[Packet, Verdict, SecondFactorResult], None],
        *,
        can_show_challenges: bool,
    ) -> None:
        self.name = name
        self.is_alive = True
        self.answers: dict[int, str] = {}
        self._database, self._park, self._clock = database, park, clock
        self._stored, self._sent = stored, sent
        self.store = store = NodeStore(database, park)
        self.attached = Attached("phone", "phone/1", Provider(phone, park), TIMEOUT_S)  # type: ignore[arg-type]
        pauses = _NoPauses(store, _PAUSE_METRICS, clock)  # type: ignore[arg-type]
        self.calls = Calls(pauses) if code.calls is None else code.calls(store, _VAULT, name, pauses)  # type: ignore[arg-type]
        self._denials = _PromptDenials(store, NoNotices(), pauses, clock)  # type: ignore[arg-type]
        self.second = code.second(
            _Providers(self.attached),
            code.challenges(store, _VAULT, clock),  # type: ignore[arg-type]
            self.calls,
            _METRICS,
            pauses,
            self._denials,
            WebLimits(NoNotices(), clock),
            patience=lambda *_: 0.0 if can_show_challenges else math.inf,
            clock=clock,
        )
        self._nursery: trio.Nursery

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run until the end of the exploration."""
        async with trio.open_nursery() as self._nursery:
            await self._nursery.start(self.second.run)
            task_status.started()

    def stop(self) -> None:
        """Begin to stop."""
        self._nursery.start_soon(self.second.stop_waiting)

    def deny(self, done: Callable[[], None]) -> None:
        """Let the user deny all logins on a page of this node. done: called in the transaction."""
        self._nursery.start_soon(self._deny, done)

    async def _deny(self, done: Callable[[], None]) -> None:
        with suppress(StoreError):  # the page shows an error
            await self._denials.deny(Denial(DOMAIN.id, "ann", DeniedAt.PAGE), done)

    def receive(self, packet: Packet, device_name: str) -> None:
        """Receive a packet that is no duplicate. device_name: LATE, CROSSING or empty."""
        self.answers[packet.number] = "pending"
        self._nursery.start_soon(self._serve, packet, device_name)

    def left(self, packet: Packet) -> bool:
        """Return whether the node remembers that another node answers a packet."""
        return self.second._running.was_left(self._login(packet))

    async def _serve(self, packet: Packet, device_name: str) -> None:
        login = self._login(packet)
        login.device.device_name = device_name
        try:
            if packet.challenge:
                result = await self.second.resume(login, packet.challenge, packet.step, TypedCode(packet.code))
            else:
                result = await self.second.ask(login, DOMAIN, Asked(0, "", "local"))
        except (PacketError, StoreError):  # another node answers the login, or it is decided again
            self.answers.pop(packet.number, None)
            return
        if result is None:
            self.answers[packet.number] = "superseded"
            return
        verdict = _verdict(result)
        error = await self._park("_Batch.write", (packet, verdict, result))
        write = partial(self._write, packet=packet, verdict=verdict, result=result)
        is_kept = error == FAILS or self._database.run(write)
        if error or not is_kept:
            if not is_kept:
                self.second.left(login)
            self.answers.pop(packet.number, None)
            return
        await self._park("Exchange.committed", (packet, verdict))
        self.answers[packet.number] = verdict
        self._sent(packet, verdict, result)

    def _write(self, tx: Tx, packet: Packet, verdict: Verdict, result: SecondFactorResult) -> bool:
        """Store an answer. Return False if another node answers. This is what `Journal` does for one login."""
        keep = self.second.keep(result)
        if keep is not None and keep(tx) is False:
            return False
        self._stored(packet, verdict, result)
        tx.execute(
            "insert into answers (packet, node, code) values (:packet, :node, :code)",
            packet=packet.number,
            node=self.name[0],
            code=verdict.value,
        )
        return True

    def _login(self, packet: Packet) -> Login:
        request = decode(_datagram(packet.number), SharedSecret(SECRET))
        known = Entry((SOURCE, request.identifier), request.authenticator)
        login = Login(Arrival(request, _CLIENT, SOURCE, self._clock()), _Listener(), known)  # type: ignore[arg-type]
        login.user, login.domain, login.home, login.provider = "ann", DOMAIN, DOMAIN, self.attached
        login.device = Device(1, SOURCE[0], SOURCE[0], "", 0)
        login.method, login.station = Method.PAP, "02-00-00-00-00-01"
        return login


def _verdict(result: SecondFactorResult) -> Verdict:
    if result.reason is Reason.NONE:
        return Verdict.ACCEPT
    return Verdict.CHALLENGE if result.reason in (Reason.ASKED, Reason.ASKED_AGAIN) else Verdict.REJECT


@cache
def _datagram(number: int) -> bytes:
    return pap("ann", "hello", _SESSION, identifier=number, authenticator=bytes([number]) * 16)
