"""Predict the result of asking for a second factor, without asking. Monitoring and the impact preview use the same
functions, so that their results agree.

`Enrolments` caches which users have a second factor. The provider is asked in separate tasks, and no user is prompted.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from sallyport.areas.devices.rows import Learned
from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.login import Login, Reason
from sallyport.areas.login.second.prompts import UserKey
from sallyport.areas.mfa.circuit import Attached, Unavailable
from sallyport.areas.mfa.provider import Enrolment, ProviderError, Strength
from sallyport.base.bounded import BoundedMap
from sallyport.base.text import fold
from sallyport.radius.password import TYPED, Method

UNAVAILABLE = {Unavailable.NONE: Reason.NO_PROVIDER, Unavailable.UNREADABLE: Reason.UNREADABLE}
NEARLY = 0.8
MIN_PATIENCE_S = 1.0


def patience_s(give_up_ms: int | None) -> float:
    """Return the time in seconds for which a login may wait, so that it gets an answer before its device gives up. This
    time is a little less than the device's timeout. If the timeout is unknown, the result is infinity.

    give_up_ms: the timeout of the device in milliseconds, or None if unknown.
    """
    return math.inf if give_up_ms is None else max(MIN_PATIENCE_S, give_up_ms / 1000 * NEARLY)


def device_patience(login: Login, attached: Attached) -> float:
    """Return the time in seconds for which a login may wait from now on before it gets a challenge. If the device's
    timeout is shorter than the time within which 95 % of the prompts are answered, the login waits a little less than
    the timeout from its first packet on. Otherwise, or if one of these times is unknown, the result is infinity. It is
    infinity too if the device is known to treat a challenge as a refusal."""
    posture = login.device.posture
    limit_s = patience_s(posture.timeout_ms(login.arrival.at))
    p95_s = attached.provider.p95_s() if limit_s < math.inf else None
    is_early = p95_s is not None and limit_s < p95_s and posture.challenge_support(login.arrival.at) != "no"
    return max(0.0, login.known.first + limit_s - time.monotonic()) if is_early else math.inf


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a domain can ask users for a second factor now. attached: the provider, or None if the domain has none.
    away: the reason why the provider cannot be asked, or NONE if it can."""

    attached: Attached | None
    away: Reason

    def gives_up(self, device: Learned, now: int) -> bool:
        """Return whether a device gives up too soon: it waits less than the time within which 95 % of the prompts are
        answered, and it is not known to show challenges.

        The result is always False for a provider that asks for typed codes, because then no device waits for an
        approval. now: the time in microseconds.
        """
        timeout_ms = device.timeout_ms(now)
        if self.attached is None or timeout_ms is None or self.attached.provider.asks_for_codes:
            return False
        p95_s = self.attached.provider.p95_s()
        return p95_s is not None and patience_s(timeout_ms) < p95_s and device.challenge_support(now) != "yes"

    def takes_no_code(self, method: str) -> bool:
        """Return whether this authentication method cannot carry a code that the provider needs."""
        return method not in TYPED and self.attached is not None and self.attached.provider.only_codes

    @property
    def shows_links(self) -> bool:
        """Whether a challenge shows an enrolment link to a user without a factor."""
        return self.attached is not None and self.attached.provider.shows_links

    @property
    def no_code_reason(self) -> Reason:
        """The result of asking a user whose login cannot carry a code that the provider needs."""
        by_code = self.attached is not None and self.attached.provider.binds_by_code
        return Reason.CODE_NOT_RETURNED if by_code else Reason.TAKES_NO_CODE

    def comes_to(self, enrolment: Reason, *, gives_up: bool, method: str, strength: Strength = Strength.ANY) -> Reason:
        """Return the predicted result of asking a user.

        enrolment: the result that follows from the user's enrolment alone, such as ASKED or NOT_ENROLLED. gives_up:
        whether the device gives up too soon. method: the authentication method of the login. strength: the minimum
        strength of the second factor.
        """
        if self.attached is not None and self.attached.provider.strongest < strength:
            return Reason.NOT_STRONG_ENOUGH
        if self.takes_no_code(method):
            return self.no_code_reason
        if self.away is not Reason.NONE:
            return self.away
        return Reason.GIVES_UP if gives_up and enrolment is Reason.ASKED else enrolment


def standing(attached: Attached | Unavailable) -> Standing:
    """Return whether a domain can ask users for a second factor now. attached: the domain's provider, or the reason why
    the domain has none."""
    if isinstance(attached, Unavailable):
        return Standing(None, UNAVAILABLE[attached])
    return Standing(attached, Reason.CIRCUIT_OPEN if attached.provider.is_open else Reason.NONE)


ENROLLED_S: Final = 600.0
OTHERWISE_S: Final = 60.0  # short, because a user may enrol soon
WAITING: Final = 1000
"""Maximum number of pending look-ups of one tenant, both waiting and running."""
AT_ONCE: Final = 4
"""Maximum number of running look-ups of one tenant. The limit keeps a slow provider from delaying other tenants."""
LOOK_UP_S: Final = 15.0
SURVEYED_S: Final = 3600.0
"""Lifetime of the results of a survey, in seconds. A survey asks about all users of a domain. Its first results must
still be valid when its last look-up ends."""
LEARN_S: Final = 3.0
MAX_KNOWN: Final = 65_536

log = structlog.get_logger()

_REASONS = {
    Enrolment.ENROLLED: Reason.ASKED,
    Enrolment.NOT_ENROLLED: Reason.NOT_ENROLLED,
    Enrolment.UNKNOWN: Reason.ENROLMENT_UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class _LookUp:
    """A look-up of a user that waits for the provider."""

    attached: Attached
    tenant_id: int
    user: UserKey
    name: str


@dataclass(frozen=True, slots=True)
class _CachedEnrolment:
    """A cached result, with its expiry. stamp: the stamp of the provider's configuration that gave the result.
    strongest: how strong the user's answer can be at most."""

    stamp: str
    reason: Reason
    until: float
    strongest: Strength = Strength.ANY

    def comes_to(self, strength: Strength) -> Reason:
        """Return the result for a login that needs a factor of this strength."""
        is_too_weak = self.reason is Reason.ASKED and self.strongest < strength
        return Reason.NOT_STRONG_ENOUGH if is_too_weak else self.reason


class Enrolments:
    """The cache of users' enrolments. `run` must be running, because it asks the providers.

    A domain may have several providers, so a user may have several results, each by the name of its provider.

    clock: a function that returns monotonic seconds. max_known: the maximum number of users in the cache. Each tenant
    has a share.
    """

    def __init__(self, clock: Callable[[], float], *, max_known: int = MAX_KNOWN) -> None:
        self._clock = clock
        self._known = BoundedMap[UserKey, dict[str, _CachedEnrolment]](max_known)
        self._asked: dict[tuple[UserKey, str], trio.Event] = {}
        self._changes = 0
        self._waiting = Counter[int]()  # by tenant
        self._turns = defaultdict[int, trio.CapacityLimiter](lambda: trio.CapacityLimiter(AT_ONCE))  # by tenant
        self._send, self._receive = trio.open_memory_channel[_LookUp](math.inf)

    def look_up(
        self, attached: Attached, tenant_id: int, user: UserKey, name: str, strength: Strength = Strength.ANY
    ) -> Reason:
        """Predict the result of asking a user: ASKED, NOT_ENROLLED, NOT_STRONG_ENOUGH, UNREACHABLE, RATE_LIMITED or
        ENROLMENT_UNKNOWN. strength: the minimum strength of the second factor.

        The call never waits. If the cache has no current entry for the user, a look-up starts. Until it ends, the
        result is that of the expired entry, or ENROLMENT_UNKNOWN if there is none.
        """
        known = self._cached(attached, user)
        is_known = known is not None and known.until > self._clock()
        # if the tenant has too many pending look-ups, a later login starts this one
        if not is_known and (user, attached.name) not in self._asked and self._waiting[tenant_id] < WAITING:
            self._waiting[tenant_id] += 1
            self._asked[user, attached.name] = trio.Event()
            self._send.send_nowait(_LookUp(attached, tenant_id, user, name))
        return Reason.ENROLMENT_UNKNOWN if known is None else known.comes_to(strength)

    def _cached(self, attached: Attached, user: UserKey) -> _CachedEnrolment | None:
        """Return the last result of a provider with its present configuration, even if it has expired."""
        known = (self._known.get(user) or {}).get(attached.name)
        return None if known is None or known.stamp != attached.stamp else known

    def _keep(self, attached: Attached, tenant_id: int, user: UserKey, found: _CachedEnrolment) -> None:
        self._known.put(user, {**(self._known.get(user) or {}), attached.name: found}, tenant_id)

    async def is_too_weak(self, attached: Attached, name: str, strength: Strength) -> bool:
        """Ask the provider whether a user is enrolled, but no factor of the user has the strength that a login needs.
        The answer is not from the cache, because a user may enrol a stronger factor and log in at once.

        Return False if the provider cannot be asked, or does not answer within LEARN_S. The answer of the user to the
        prompt is then compared with the strength.
        """
        with trio.move_on_after(LEARN_S), suppress(ProviderError):
            found = await attached.provider.enrolled(name, deadline_s=LOOK_UP_S)
            return found.enrolment is Enrolment.ENROLLED and found.strongest < strength
        return False

    async def learn(self, attached: Attached, tenant_id: int, user: UserKey, name: str) -> Reason:
        """Return what `look_up` returns. If this is ENROLMENT_UNKNOWN, wait up to LEARN_S for the provider's answer
        first. The number of pending look-ups is limited, so that a client with random names cannot flood the provider.
        """
        reason = self.look_up(attached, tenant_id, user, name)
        found_out = self._asked.get((user, attached.name))
        if reason is Reason.ENROLMENT_UNKNOWN and found_out is not None:
            with trio.move_on_after(LEARN_S):
                await found_out.wait()
            reason = self.known(attached, user) or reason
        return reason

    def forecast(self, login: Login, domain: Domain, attached: Attached, strength: Strength = Strength.ANY) -> Reason:
        """Predict the result of asking for a login's second factor. It prompts no user and never waits. strength: the
        minimum strength of the second factor."""
        now = standing(attached)
        method = login.method if login.code is None else Method.PAP  # a code already follows the password
        if now.takes_no_code(method):
            return now.no_code_reason
        # This is done also while the circuit is open, because the look-up tries the provider again.
        user = (domain.id, fold(login.principal))
        enrolment = self.look_up(attached, domain.tenant_id, user, login.principal, strength)
        gives_up = now.gives_up(login.device.posture, login.arrival.at)
        return now.comes_to(enrolment, gives_up=gives_up, method=method, strength=strength)

    def takes_codes(self, provider: Attached | Unavailable, domain: Domain, name: str) -> bool:
        """Return whether a code may follow a user's password. Return False if the provider asks for no codes, or if the
        user is known to have none."""
        if isinstance(provider, Unavailable) or not provider.provider.asks_for_codes:
            return False
        user = (domain.id, fold(name))
        return self.look_up(provider, domain.tenant_id, user, name) is not Reason.NOT_ENROLLED

    async def has_codes(self, provider: Attached | Unavailable, domain: Domain, name: str) -> bool:
        """Return whether a user is known to have codes. If this is unknown, wait a few seconds for the provider."""
        if isinstance(provider, Unavailable) or not provider.provider.asks_for_codes:
            return False
        return await self.learn(provider, domain.tenant_id, (domain.id, fold(name)), name) is Reason.ASKED

    def known(self, attached: Attached, user: UserKey, strength: Strength = Strength.ANY) -> Reason | None:
        """Return the cached result, or None if there is none or it has expired. The provider is not asked. strength:
        the minimum strength of the second factor."""
        known = self._cached(attached, user)
        return None if known is None or known.until <= self._clock() else known.comes_to(strength)

    async def find_out(
        self, attached: Attached, tenant_id: int, user: UserKey, name: str, strength: Strength = Strength.ANY
    ) -> Reason:
        """Return the predicted result of asking a user, from the cache or from the provider. strength: the minimum
        strength of the second factor."""
        known = self.known(attached, user, strength)
        if known is not None:
            return known
        changes, strongest = self._changes, Strength.ANY
        try:
            enrolled = await attached.provider.enrolled(name, deadline_s=LOOK_UP_S)
            reason, strongest = _REASONS[enrolled.enrolment], enrolled.strongest
        except ProviderError as error:
            log.warning("mfa_enrolment_unknown", provider=attached.name, error=str(error))
            reason = Reason.RATE_LIMITED if error.limited else Reason.UNREACHABLE
        until = self._clock() + (ENROLLED_S if reason is Reason.ASKED else OTHERWISE_S)
        found = _CachedEnrolment(attached.stamp, reason, until, strongest)
        if changes == self._changes:
            self._keep(attached, tenant_id, user, found)
        return found.comes_to(strength)

    async def survey(self, attached: Attached, tenant_id: int, user: UserKey, name: str) -> bool:
        """Ask the provider whether a user is enrolled, and cache the result. Return False if the provider cannot be
        asked.

        If the provider's rate limit is reached, wait and try again, without a time limit.
        """
        while True:
            changes = self._changes
            try:
                found = await attached.provider.enrolled(name, deadline_s=LOOK_UP_S)
            except ProviderError as error:
                if not error.limited:
                    log.warning("mfa_enrolment_unknown", provider=attached.name, error=str(error))
                    return False
                await trio.sleep(max(error.retry_after_s, 1.0))
                continue
            if changes == self._changes:
                until, reason = self._clock() + SURVEYED_S, _REASONS[found.enrolment]
                self._keep(attached, tenant_id, user, _CachedEnrolment(attached.stamp, reason, until, found.strongest))
            return True

    def forget(self, domain_id: int, name: str | None) -> None:
        """Remove the cached enrolment of an endpoint user after an admin has changed the user. name: the user's name,
        or None for all users of the domain."""
        self._changes += 1
        if name is not None:
            self._known.pop((domain_id, fold(name)))
            return
        for user in [user for user in self._known if user[0] == domain_id]:
            self._known.pop(user)

    async def run(self) -> None:
        """Ask the providers about users until cancelled. A few users of each tenant are looked up at the same time."""
        async with trio.open_nursery() as nursery:
            async for wanted in self._receive:
                nursery.start_soon(self._work, wanted)

    async def _work(self, wanted: _LookUp) -> None:
        try:
            async with self._turns[wanted.tenant_id]:
                await self.find_out(wanted.attached, wanted.tenant_id, wanted.user, wanted.name)
        except Exception:
            log.exception("mfa_enrolment_unknown", provider=wanted.attached.name)
        finally:
            self._waiting[wanted.tenant_id] -= 1
            self._asked.pop((wanted.user, wanted.attached.name)).set()
