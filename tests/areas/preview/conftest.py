"""Recorded logins, and a provider whose answers are set by a test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
import trio

from sallyport.areas.domains.bodies import Impact
from sallyport.areas.events.repo import COUNTER
from sallyport.areas.mfa.host import Fields, Host
from sallyport.areas.mfa.provider import (
    Answer,
    Code,
    Enrolled,
    Enrolment,
    Outcome,
    ProviderError,
    Question,
    Strength,
)
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.preview.bodies import ProposedRule
from sallyport.base.clock import SECOND
from sallyport.store import counters
from sallyport.store.model import Tx, Value
from tests.areas import Areas, areas, clock

__all__ = ["areas", "clock"]

HOUR = 3600 * SECOND
DAY = 24 * HOUR


class ScriptedFields(Fields):
    """Settings of the provider.

    enrolled: the names of the enrolled users, separated by commas. away: whether the provider is unreachable. unsure:
    whether enrolments are unknown. strong: the names of the users with a phishing-resistant factor. shows:
    whether a challenge shows an enrolment link.
    """

    enrolled: str = ""
    away: bool = False
    unsure: bool = False
    strong: str = ""
    shows: bool = False


class Scripted:
    """A second factor that asks for a code.

    calls: the users whose enrolment was requested from any instance.
    """

    name: ClassVar[str] = "scripted"
    fields: ClassVar[type[Fields]] = ScriptedFields
    asks_for_codes: ClassVar[bool] = False
    calls: ClassVar[list[str]] = []

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, ScriptedFields)
        self._fields = fields
        self.shows_links = fields.shows

    async def enrolled(self, user: str) -> Enrolment | Enrolled:
        """Return the configured enrolment."""
        self.calls.append(user)
        await trio.lowlevel.checkpoint()
        if self._fields.unsure:
            return Enrolment.UNKNOWN
        if self._fields.strong:
            strength = Strength.PHISHING_RESISTANT if user in self._fields.strong.split(",") else Strength.ANY
            return Enrolled(Enrolment.ENROLLED, strength)
        return Enrolment.ENROLLED if self._has(user) else Enrolment.NOT_ENROLLED

    async def start(self, question: Question) -> Answer:
        """Ask for a code."""
        return Answer(Outcome.CODE if self._has(question.user) else Outcome.NOT_ENROLLED)

    async def poll(self, handle: str) -> Answer:
        """Deny the login, because this provider sends no prompt to wait for."""
        return Answer(Outcome.DENIED)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Accept every code."""
        return Answer(Outcome.APPROVED)

    async def cancel(self, handle: str) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""

    def _has(self, user: str) -> bool:
        if self._fields.away:
            raise ProviderError("away")
        return user.casefold() in self._fields.enrolled.split(",")


class Keys(Scripted):
    """A provider of passkeys."""

    name: ClassVar[str] = "keys"
    strongest: ClassVar[Strength] = Strength.PHISHING_RESISTANT


class OnlyCodes(Scripted):
    """A provider that always needs a code."""

    only_codes: ClassVar[bool] = True


@dataclass
class Book:
    """A domain with recorded logins."""

    areas: Areas

    async def users(self, *names: str) -> None:
        """Add users to the domain."""
        for name in names:
            await self.areas.add_user(self.areas.domain, name, b"hello")

    async def provider(self, **fields: object) -> None:
        """Set the domain's second factor."""
        self.areas.kinds["scripted"] = Scripted
        await self.areas.providers.set(self.areas.domain, "scripted", fields, 60)

    async def keys(self, strong: str) -> None:
        """Add a provider of passkeys beside the default one. strong: the names of the users with a passkey."""
        self.areas.kinds["keys"] = Keys
        await self.areas.providers.set(self.areas.domain, "keys", {"strong": strong}, 60, beside=True)

    async def rule(self, **fields: object) -> None:
        """Add a login rule to the domain."""
        await self.areas.rules.add(self.areas.domain, RuleFields.model_validate({"name": "r", **fields}))

    async def device(self, name: str = "switch", **columns: Value) -> int:
        """Add a device of the domain at 192.0.2.1, and return its ID.

        columns: the columns of its posture, such as give_up_ms.
        """
        areas = self.areas
        zeros = dict.fromkeys(("signed", "unsigned", "unsigned_proxied", "challenges", "challenge_answers"), 0)

        def work(tx: Tx) -> int:
            found = tx.value(
                int,
                "insert into devices (domain_id, ip_address, client_ip, nas_identifier, device_name, device_type, "
                "device_type_certainty, nas_device_type, nas_port_type, first_seen, last_seen, request_count, "
                "registrations, evidence) values (:d, '192.0.2.1', '10.0.0.1', :name, :name, 'Cisco ASA', '', "
                "'Cisco ASA', 'Virtual', 0, 0, 0, 1, '{}') returning id",
                d=areas.domain,
                name=name,
            )
            assert found is not None
            if columns:
                posture = {**zeros, "gave_up_at": areas.clock(), **columns, "device_id": found}
                tx.insert("device_posture", tuple(posture), [tuple(posture.values())])
            return found

        return await areas.store.write(work)

    async def events(self, names: Sequence[str], **fields: Value) -> None:
        """Add an event for each name. Its time is one hour ago unless `at` is given."""
        areas = self.areas
        same: dict[str, Value] = {
            "at": areas.clock() - HOUR, "domain_id": areas.domain, "ip_address": "192.0.2.1", "client_ip": "10.0.0.1",
            "device_id": 0, "device_name": "switch", "station": "", "method": "pap", "factor": "local",
            "decision": "accept", "applied_decision": "accept", "would_have_been": "accept", "reason": "",
            "latency_us": 0, "service_type": None, "machine": None, **fields,
        }  # fmt: skip
        rows = [(name,) for name in names]

        def work(tx: Tx) -> None:
            tx.insert("events", ("user_name",), rows, same=same)
            counters.add(tx, int(str(same["domain_id"])), COUNTER, len(rows))

        await areas.store.write(work)

    async def impact(
        self, *, days: int = 30, fallback: str | None = None, proposed: ProposedRule | None = None
    ) -> Impact:
        """Return the impact of enforce mode."""
        return await self.areas.preview.impact(self.areas.domain, days=days, fallback=fallback, proposed=proposed)

    async def outcomes(self, **asked: int) -> dict[str, tuple[str, str, int]]:
        """Return the outcome, the reason and the number of logins of each user."""
        impact = await self.impact(**asked)
        return {each.user: (each.outcome.value, each.reason, each.logins) for each in impact.users}


@pytest.fixture
def book(areas: Areas) -> Book:
    """A domain without logins."""
    Scripted.calls.clear()
    return Book(areas)
