"""The forecast of the result that asking for a second factor would have, without asking. Monitoring and the impact
preview share it, so that their results agree."""

from dataclasses import dataclass
from math import inf

from sallyport.login.login import Reason
from sallyport.mfa.circuit import Attached, Unavailable
from sallyport.radius.password import TYPED

UNAVAILABLE = {Unavailable.NONE: Reason.NO_PROVIDER, Unavailable.UNREADABLE: Reason.UNREADABLE}
NEARLY = 0.8
LEAST_S = 1.0


def patience_s(give_up_ms: int | None) -> float:
    """Return the number of seconds for which a device waits for an answer. It is a little less than the timeout of the
    device, or infinity if the timeout is not known."""
    return inf if give_up_ms is None else max(LEAST_S, give_up_ms / 1000 * NEARLY)


@dataclass(frozen=True, slots=True)
class Standing:
    """The present state of a domain's second factor. attached: the provider; None if there is none to ask. away: the
    reason why the provider cannot be asked; NONE if it can."""

    attached: Attached | None
    away: Reason

    def gives_up(self, give_up_ms: int | None, *, takes_challenges: bool) -> bool:
        """Return whether a device has never answered a challenge and its timeout is too short for nearly all users. The
        result is False for a provider with typed codes, because no device waits for them."""
        if self.attached is None or give_up_ms is None or takes_challenges or self.attached.provider.asks_for_codes:
            return False
        p95_s = self.attached.provider.p95_s()
        return p95_s is not None and patience_s(give_up_ms) < p95_s

    def takes_no_code(self, method: str) -> bool:
        """Return whether the provider requires a code that a login by this method cannot carry."""
        return method not in TYPED and self.attached is not None and self.attached.provider.only_codes

    def comes_to(self, enrolment: Reason, *, gives_up: bool, method: str) -> Reason:
        """Return the result of asking a user. enrolment: the user's enrolment. gives_up: whether the device gives up.
        method: the authentication method of the login."""
        if self.takes_no_code(method):
            return Reason.TAKES_NO_CODE
        if self.away is not Reason.NONE:
            return self.away
        return Reason.GIVES_UP if gives_up and enrolment is Reason.ASKED else enrolment


def standing(attached: Attached | Unavailable) -> Standing:
    """Return the present state of a domain's second factor. attached: the domain's provider, or the reason why there is
    none."""
    if isinstance(attached, Unavailable):
        return Standing(None, UNAVAILABLE[attached])
    return Standing(attached, Reason.CIRCUIT_OPEN if attached.provider.is_open else Reason.NONE)
