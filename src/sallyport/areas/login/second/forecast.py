"""Predict the result of asking for a second factor, without asking. Monitoring and the impact preview use the same
functions, so that their results agree."""

from dataclasses import dataclass
from math import inf

from sallyport.areas.devices.device import Learned
from sallyport.areas.login.login import Reason
from sallyport.areas.mfa.circuit import Attached, Unavailable
from sallyport.radius.password import TYPED

UNAVAILABLE = {Unavailable.NONE: Reason.NO_PROVIDER, Unavailable.UNREADABLE: Reason.UNREADABLE}
NEARLY = 0.8
LEAST_S = 1.0


def patience_s(give_up_ms: int | None) -> float:
    """Return the time in seconds for which a login may wait, so that it gets an answer before its device gives up. This
    time is a little less than the device's timeout. If the timeout is unknown, the result is infinity.

    give_up_ms: the timeout of the device in milliseconds, or None if unknown.
    """
    return inf if give_up_ms is None else max(LEAST_S, give_up_ms / 1000 * NEARLY)


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

    def comes_to(self, enrolment: Reason, *, gives_up: bool, method: str) -> Reason:
        """Return the predicted result of asking a user.

        enrolment: the result that follows from the user's enrolment alone, such as ASKED or NOT_ENROLLED. gives_up:
        whether the device gives up too soon. method: the authentication method of the login.
        """
        if self.takes_no_code(method):
            return Reason.TAKES_NO_CODE
        if self.away is not Reason.NONE:
            return self.away
        return Reason.GIVES_UP if gives_up and enrolment is Reason.ASKED else enrolment


def standing(attached: Attached | Unavailable) -> Standing:
    """Return whether a domain can ask users for a second factor now. attached: the domain's provider, or the reason why
    the domain has none."""
    if isinstance(attached, Unavailable):
        return Standing(None, UNAVAILABLE[attached])
    return Standing(attached, Reason.CIRCUIT_OPEN if attached.provider.is_open else Reason.NONE)
