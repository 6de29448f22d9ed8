"""Fixtures for logins without a socket: the tests decide the logins and write them, and an exchange records
the result."""

from dataclasses import dataclass, field

import pytest
import trio

from sallyport.areas.clients.client import Client
from sallyport.areas.devices.device import Device
from sallyport.areas.devices.rows import UNKNOWN
from sallyport.areas.login.login import Answer, Answered, Decision, Login, Reason, Verdict
from sallyport.areas.login.second_step import SecondStep
from sallyport.areas.policy.attempt import Arrival
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, encode_reply
from tests.areas import Areas, areas, clock
from tests.packets import opened

__all__ = ["areas", "clock"]

SOURCE = ("192.0.2.1", 40000)


@dataclass
class Answers:
    """An exchange that sends nothing.

    It records an entry in `sent` after the commit, and in `dropped` if the commit fails.
    """

    number: int = 0
    sent: list[Answered] = field(default_factory=list)
    dropped: list[Answered] = field(default_factory=list)
    recorded: trio.Event = field(default_factory=trio.Event)

    def committed(self, entry: Answered, now: int) -> None:
        """Record an entry that was committed."""
        self.sent.append(entry)
        self.recorded.set()

    def abandoned(self, entry: Answered) -> None:
        """Record an entry that could not be committed."""
        self.dropped.append(entry)
        self.recorded.set()

    def lost(self, entry: Answered) -> None:
        """Record an entry that another node answers."""
        self.dropped.append(entry)
        self.recorded.set()


@dataclass
class FakeListener:
    """A listener without a socket. It creates logins and decides them.

    client: the RADIUS client 192.0.2.1, which serves all domains of the tenant.
    """

    areas: Areas
    client: Client
    answers: Answers

    def login(self, datagram: bytes, client: Client | None = None) -> Login:
        """Return a login that has just arrived."""
        client = client or self.client
        request = opened(datagram)
        known = Entry((SOURCE, request.identifier), request.authenticator)
        return Login(Arrival(request, client, SOURCE, self.areas.clock()), self.answers, known)

    async def decide(self, login: Login) -> Decision:
        """Return the decision of a login, with or without reading the store."""
        pipeline = self.areas.pipeline
        decision = pipeline.begin(login) or await pipeline.check(login)
        if decision is None:
            pipeline.note(login)
            decision = await SecondStep(pipeline).ask(login)
        assert decision is not None, "another request of this login took its place"
        return decision

    async def decided(self, datagram: bytes, client: Client | None = None) -> tuple[str, str, str, int]:
        """Decide a request in a monitored domain.

        Return the applied verdict, the reason of a reject, the user and the domain id.
        """
        login = self.login(datagram, client)
        decision = await self.decide(login)
        reason = Reason.NONE if decision.applied is Verdict.ACCEPT else decision.reason
        return decision.applied, reason, login.user, login.domain.id if login.domain else 0

    async def ready(self, datagram: bytes) -> Login:
        """Return a decided login for the journal, with its device, its station and its answer."""
        login = self.login(datagram)
        login.answer = Answer(await self.decide(login))
        self.areas.pipeline.note(login)
        code = ACCESS_ACCEPT if login.answer.decision.applied is Verdict.ACCEPT else ACCESS_REJECT
        login.reply = encode_reply(code, login.arrival.request, self.client.secret)
        return login


@pytest.fixture
async def listener(areas: Areas) -> FakeListener:
    """Return a listener whose domain has the user ann with the password hello."""
    await areas.add_user(areas.domain, "ann", b"hello")
    return FakeListener(areas, await areas.client(), Answers())


def unproven(login: Login) -> None:
    """Give a login a device that is not stored, as for an unproven sender."""
    login.device = Device(0, SOURCE[0], SOURCE[0], "", login.arrival.at)
    login.device.id = 0
    login.device.device_name = UNKNOWN
