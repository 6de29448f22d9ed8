"""Trace ids, which connect what several systems know of one request or login (W3C Trace Context).

A request of the API takes the trace of its header `traceparent`, or begins a new one. A login that asks another system
begins a new one. The trace is a context variable, so that log lines, entries of the audit trail and calls to MFA
providers have it without being given it. `tracestate` is neither read nor sent: it may contain data of other systems.
"""

import re
import secrets
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

REQUEST_ID: Final = b"x-request-id"

_TRACEPARENT: Final = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?"
)
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of a request or login.

    id: 32 hexadecimal digits. span: the id of this service's part of the trace, 16 hexadecimal digits. is_sampled:
    whether the caller records the trace. own_request_id: the X-Request-Id of the caller, or empty.
    """

    id: str
    span: str
    is_sampled: bool = False
    own_request_id: str = ""

    @property
    def request_id(self) -> str:
        """The X-Request-Id of the answer."""
        return self.own_request_id or self.id

    def header(self, *, is_sampled: bool) -> str:
        """Return the value of `traceparent` in calls to other systems. is_sampled: whether this service records the
        trace."""
        return f"00-{self.id}-{self.span}-{self.is_sampled or is_sampled:02x}"


def new_trace() -> Trace:
    """Return a trace that begins here."""
    octets = secrets.token_hex(24)
    return Trace(octets[:32], octets[32:])


def received(headers: Iterable[tuple[bytes, bytes]]) -> Trace:
    """Return the trace of a request. headers: pairs of a name in lower case and a value.

    A `traceparent` that is missing, malformed (W3C Trace Context, sections 3.2 and 4.3) or repeated begins a new trace.
    An `X-Request-Id` counts if it has 1 to 64 letters, digits, dots, hyphens and underscores, so that it is harmless in
    a log.
    """
    parents: list[bytes] = []
    own: list[bytes] = []
    for name, value in headers:
        if name == b"traceparent":
            parents.append(value)
        elif name == REQUEST_ID:
            own.append(value)
    own_request_id = own[0].decode() if len(own) == 1 and _REQUEST_ID.fullmatch(own[0]) else ""
    fresh = new_trace()
    parsed = parse_traceparent(parents[0]) if len(parents) == 1 else None
    trace_id, is_sampled = parsed or (fresh.id, False)
    return Trace(trace_id, fresh.span, is_sampled, own_request_id)


def parse_traceparent(value: bytes) -> tuple[str, bool] | None:
    """Return the trace id and the flag `sampled` of a `traceparent`, or None if it is malformed. Version 00 has exactly
    four fields; a later version may have more."""
    match = _TRACEPARENT.fullmatch(value)
    if match is None or (match[1] == b"00" and match[4] is not None):
        return None
    return match[2].decode(), bool(int(match[3], 16) & _SAMPLED)


_TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current() -> Trace | None:
    """Return the trace of the running task, or None."""
    return _TRACE.get()


def follow(trace: Trace | None) -> None:
    """Set the trace for the rest of the running task, or of the surrounding `following`."""
    _TRACE.set(trace)


class following:  # noqa: N801  it reads as a statement
    """A context manager that sets the trace for the block."""

    __slots__ = ("_token", "_trace")

    def __init__(self, trace: Trace | None) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        self._token = _TRACE.set(self._trace)

    def __exit__(self, *_: object) -> None:
        _TRACE.reset(self._token)
