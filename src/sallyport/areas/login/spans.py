"""The spans of a login: the whole, its first factor, its second factor, and the store.

A login measures its waits anyway, so its spans are put together after its answer is sent. The first factor begins with
the login, and the second factor ends with the decision; the store follows. In EAP, the waits are those of all rounds. A
span contains no name of a user or of a station.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sallyport.areas.login.login import Answered, Login
from sallyport.base.trace import Trace, new_trace
from sallyport.outgoing.spans import Finished, Span


class FinishedLogin(NamedTuple):
    """What the spans of a login need of it. The times are in microseconds. decided_at: the time of the decision.
    stored_at: the time at which the answer was on disk."""

    trace: Trace | None
    at: int
    decided_at: int
    stored_at: int
    first_us: int
    second_us: int
    attributes: tuple[str, str, str, str, str, str]

    def spans(self) -> Sequence[Span]:
        """Return the spans, the whole first. The second factor has the id that the provider got as `traceparent`."""
        trace = self.trace or new_trace()
        whole = secrets.token_hex(8)
        start = min(self.at, self.decided_at - self.first_us - self.second_us)
        second = self.decided_at - self.second_us
        parts = [("first factor", start, start + self.first_us if self.first_us else second, secrets.token_hex(8))]
        if self.second_us:
            parts.append(("second factor", second, self.decided_at, trace.span))
        parts.append(("store", self.decided_at, max(self.decided_at, self.stored_at), secrets.token_hex(8)))
        named = {f"sallyport.{name}": value for name, value in zip(_NAMES, self.attributes, strict=True) if value}
        return [
            Span(trace.id, whole, "", "RADIUS login", start, parts[-1][2], named, is_server=True),
            *(Span(trace.id, own, whole, name, begin, end, {}) for name, begin, end, own in parts),
        ]


_NAMES = ("domain", "client", "method", "factor", "decision", "reason")


def exports_to(offer: Callable[[Sequence[Finished]], None]) -> Callable[[Sequence[Answered], int], None]:
    """Return a function that exports answered logins. It takes them with the time at which they were stored, in
    microseconds. offer: a function that takes finished logins."""

    def export(entries: Sequence[Answered], now: int) -> None:
        offer([_finished(each, now) for each in entries if isinstance(each, Login)])

    return export


def _finished(login: Login, now: int) -> FinishedLogin:
    arrival, answer, domain, waits = login.arrival, login.answer, login.domain, login.waits
    _, applied, _, reason = answer.decision.row
    return FinishedLogin(
        login.trace,
        arrival.at,
        arrival.at + answer.latency_us,
        now,
        waits.first_us,
        waits.second_us,
        (domain.name if domain else "", arrival.client.name, login.method, login.factor, applied, reason),
    )
