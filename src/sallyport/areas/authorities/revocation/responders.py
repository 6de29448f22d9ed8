"""OCSP responders: asked once for each certificate, and then the answer is used until it ends.

A login waits at most two seconds for a responder. After a failure, a responder is not asked for a while, so that a dead
one costs one login two seconds and not all of them; then one login tries again. Logins of one certificate share one
request, and each tenant has a limit of concurrent requests.
"""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog
import trio

from sallyport.areas.authorities.revocation.addresses import AddressClients
from sallyport.areas.authorities.revocation.ocsp import (
    MAX_RESPONSE,
    NONCE,
    OcspAnswer,
    OcspError,
    OcspQuestion,
    read_response,
)
from sallyport.areas.authorities.revocation.revoked_repo import RevokedCertificate, RevokedCertificates
from sallyport.areas.authorities.revocation.state import (
    NEVER,
    SOON_US,
    RevocationRules,
    RevocationState,
    RevocationStatus,
)
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock, from_us
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory

LIMIT_S: Final = 2.0
"""How long a login waits for a responder, in seconds."""
MAX_ANSWERS: Final = 20_000
MAX_CONCURRENT: Final = 64
"""Maximum number of concurrent requests of one tenant."""
FIRST_PAUSE_US: Final = 5 * SECOND
MAX_PAUSE_US: Final = 60 * SECOND
"""For how long a responder is not asked after a failure: doubled with each further failure."""
REFUSED_US: Final = 30 * SECOND
"""For how long a certificate is not asked about after a response that cannot be used."""
_MAX_RESPONDERS: Final = 4096
_THREADS: Final = 4

log = structlog.get_logger()

AnswerKey = tuple[int, bytes, int]
"""An authority's id, the hash of the issuer's key, and a serial number."""


class ResponderMeter(Protocol):
    """Metrics of requests to responders."""

    def asked(self, result: str, seconds: float) -> None:
        """Count a request. result: good, revoked, unknown (the answers), invalid (an answer that cannot be used), or
        failed (no answer)."""


@dataclass(frozen=True, slots=True)
class _Pause:
    """A pause after a failure. until: the time of the next request. length: its length. error: the failure."""

    until: int
    length: int
    error: str


class Responders:
    """The answers of responders, and the requests to them. meter: see `ResponderMeter`. stored: the certificates that
    any node knows as revoked."""

    def __init__(self, http: HttpFactory, clock: Clock, meter: ResponderMeter, stored: RevokedCertificates) -> None:
        self._clients = AddressClients(http, MAX_RESPONSE)
        self._clock = clock
        self._meter = meter
        self._stored = stored
        self._states = BoundedMap[AnswerKey, tuple[RevocationRules, RevocationState]](MAX_ANSWERS)
        self._pauses = BoundedMap[tuple[int, str], _Pause](_MAX_RESPONDERS)
        self._newest = BoundedMap[AnswerKey, OcspAnswer](MAX_ANSWERS)
        self._revoked = BoundedMap[AnswerKey, RevocationState](MAX_ANSWERS)
        self._asking: dict[AnswerKey, trio.Event] = {}
        self._at_once = Counter[int]()
        self._threads = trio.CapacityLimiter(_THREADS)

    def known(self, key: AnswerKey, rules: RevocationRules) -> RevocationState | None:
        """Return the state of a certificate if it was asked about by these rules and the answer is still valid."""
        found = self._states.get(key)
        is_known = found is not None and found[0] is rules and self._clock() < found[1].until
        return found[1] if found is not None and is_known else None

    def revoked(self, key: AnswerKey) -> RevocationState | None:
        """Return the state of a certificate that was revoked for ever, by any rules. A hold is not for ever."""
        found = self._revoked.get(key)
        return found if found is not None and found.until == NEVER else None

    def forget(self) -> None:
        """Drop all answers."""
        self._states.clear()
        self._newest.clear()
        self._revoked.clear()
        self._pauses.clear()

    async def ask(
        self, rules: RevocationRules, address: str, key: AnswerKey, question: OcspQuestion
    ) -> RevocationState:
        """Return the state of a certificate by its responder. It is unknown if the responder gives no usable answer.

        address: the responder. key: names the certificate. question: without a nonce.
        """
        while (asking := self._asking.get(key)) is not None:
            await asking.wait()
        state = self.revoked(key) or self.known(key, rules)
        if state is not None:
            return state
        self._asking[key] = done = trio.Event()
        try:
            await self._recall(key, rules)
            if (state := self.revoked(key)) is not None:
                return state
            if reason := self._cannot_ask(rules.tenant_id, address):
                return self._or_hold(key, self._unknown(address, reason))
            before = self._revoked.get(key)
            state = self._or_hold(key, await self._counted(rules, address, key, question))
            self._states.put(key, (rules, state), rules.tenant_id)
            await self._remember(key, rules, before)
            return state
        finally:
            del self._asking[key]
            done.set()

    async def _counted(
        self, rules: RevocationRules, address: str, key: AnswerKey, question: OcspQuestion
    ) -> RevocationState:
        """Ask, and count the request for the limit of the tenant."""
        self._at_once[rules.tenant_id] += 1
        try:
            return await self._ask(rules, address, key, question)
        finally:
            self._at_once[rules.tenant_id] -= 1
            if not self._at_once[rules.tenant_id]:
                del self._at_once[rules.tenant_id]

    async def _recall(self, key: AnswerKey, rules: RevocationRules) -> None:
        """Read whether any node knows the certificate as revoked."""
        found, newest = await self._stored.find(*key), self._newest.get(key)
        if found is None or (newest is not None and newest.this_update >= found.this_update):
            return
        is_hold = found.until != NEVER
        answer = OcspAnswer(RevocationStatus.REVOKED, found.this_update, found.until, is_hold=is_hold)
        self._newest.put(key, answer, rules.tenant_id)
        self._revoked.put(key, RevocationState(answer.status, found.text, found.until), rules.tenant_id)

    async def _remember(self, key: AnswerKey, rules: RevocationRules, before: RevocationState | None) -> None:
        """Store a certificate that is revoked now, or delete one whose hold has ended. before: the state before the
        answer."""
        state, newest = self._revoked.get(key), self._newest.get(key)
        if state is before or newest is None:
            return
        if state is None:
            await self._stored.release(*key)
            return
        authority_id, issuer_key, serial = key
        row = RevokedCertificate(
            rules.tenant_id, authority_id, issuer_key.hex(), f"{serial:x}", state.text, newest.this_update, state.until
        )
        await self._stored.keep(row)

    def _cannot_ask(self, tenant_id: int, address: str) -> str:
        """Return why a responder is not asked now. Return an empty text if it may be asked. After a pause, only the
        next request is sent."""
        pause = self._pauses.get((tenant_id, address))
        if self._at_once[tenant_id] >= MAX_CONCURRENT:
            return f"{MAX_CONCURRENT} requests are waiting already"
        if pause is None:
            return ""
        now = self._clock()
        if now < pause.until:
            return f"not asked, because it has failed: {pause.error}"
        again = _Pause(now + round(2 * LIMIT_S * SECOND), pause.length, pause.error)
        self._pauses.put((tenant_id, address), again, tenant_id)
        return ""

    def _or_hold(self, key: AnswerKey, state: RevocationState) -> RevocationState:
        """Return the state of a certificate; a revoked one stays revoked while its responder gives no usable answer."""
        kept = self._revoked.get(key)
        if state.status is not RevocationStatus.UNKNOWN or kept is None:
            return state
        return RevocationState(kept.status, f"{state.text}; before: {kept.text}", state.until)

    def _state_by(self, rules: RevocationRules, address: str, key: AnswerKey, answer: OcspAnswer) -> RevocationState:
        """Return the state by an answer, and keep it if it is revoked. An older answer that says something else than
        the newest one is not used: anyone can repeat it."""
        state, newest = _state_of(address, answer), self._newest.get(key)
        if answer.status is RevocationStatus.UNKNOWN:
            return state
        if newest is not None and answer.this_update <= newest.this_update:
            if answer.status is newest.status:
                return state
            if answer.status is RevocationStatus.GOOD or answer.this_update < newest.this_update:
                return self._unknown(address, "the response is not newer than an earlier one with another status")
        self._newest.put(key, answer, rules.tenant_id)
        if answer.status is RevocationStatus.GOOD:
            self._revoked.pop(key)
            return state
        state = state if answer.is_hold else replace(state, until=NEVER)
        self._revoked.put(key, state, rules.tenant_id)
        return state

    async def _ask(
        self, rules: RevocationRules, address: str, key: AnswerKey, question: OcspQuestion
    ) -> RevocationState:
        began = trio.current_time()
        nonce = secrets.token_bytes(NONCE) if rules.uses_nonce else b""
        asked = replace(question, nonce=nonce)
        pause_key = rules.tenant_id, address
        try:
            body = await self._clients.exchange(
                rules.tenant_id, address, LIMIT_S, asked.request(), "application/ocsp-request"
            )
        except ProviderError as error:
            before = self._pauses.get(pause_key)
            length = FIRST_PAUSE_US if before is None else min(2 * before.length, MAX_PAUSE_US)
            self._pauses.put(pause_key, _Pause(self._clock() + length, length, str(error)), rules.tenant_id)
            self._meter.asked("failed", trio.current_time() - began)
            return self._unknown(address, str(error))
        except Exception:  # a certificate of a tenant must not end a task that serves all tenants
            log.exception("ocsp_request_failed", address=address)
            self._meter.asked("failed", trio.current_time() - began)
            return self._unknown(address, "no request can be made for this certificate")
        self._pauses.pop(pause_key)
        now = self._clock()
        try:
            answer = await trio.to_thread.run_sync(read_response, body, asked, now, limiter=self._threads)
        except OcspError as error:
            self._meter.asked("invalid", trio.current_time() - began)
            return RevocationState(RevocationStatus.UNKNOWN, f"OCSP {address}: {error}", now + REFUSED_US)
        self._meter.asked(answer.status.value, trio.current_time() - began)
        return self._state_by(rules, address, key, answer)

    def _unknown(self, address: str, reason: str) -> RevocationState:
        return RevocationState(RevocationStatus.UNKNOWN, f"OCSP {address}: {reason}", self._clock() + SOON_US)


def _state_of(address: str, answer: OcspAnswer) -> RevocationState:
    detail = f" {answer.detail}" if answer.detail else ""
    text = f"OCSP {address} of {from_us(answer.this_update):%Y-%m-%d %H:%M}: {answer.status}{detail}"
    return RevocationState(answer.status, text, answer.until)
