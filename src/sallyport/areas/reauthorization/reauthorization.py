"""A re-authorization, and a session that it changes. Times are in microseconds."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import iso

MAX_KEPT: Final = 10
"""Number of re-authorizations of a domain that are kept. Older ones are deleted when a new one starts."""


def is_set(value: int) -> bool:
    """Return whether a flag of the store is set."""
    return bool(value)


class RunState(StrEnum):
    """State of a re-authorization. `stopped`: an admin has stopped it, or the domain was removed."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"


class SessionEffect(StrEnum):
    """How a session changes: its device is asked to end it, or to set attributes. `undecided`: it is not certain, and
    nothing is sent."""

    DISCONNECT = "disconnect"
    CHANGE = "change"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A live session that changes. attributes: the encoded attributes to set."""

    session_id: Annotated[int, Wire("Id of the session.", "sessionId", look="none")]
    user_name: Annotated[str, Wire("User of the session.", "userName", title="User")]
    device_name: Annotated[str, Wire("Name of the device.", "deviceName", title="Device")]
    station: Annotated[str, Wire("Calling-Station-Id; empty if unknown.", look="mac")]
    effect: Annotated[
        str,
        Wire(
            "disconnect: the device is asked to end the session. change: it is asked to set attributes. undecided: "
            "nothing is sent.",
            kind=SessionEffect,
        ),
    ]
    reason: Annotated[str, Wire("Reason, in words.")]
    before: Annotated[
        str, Wire("Attributes that the login got, one on each line.", title="Attributes so far", look="changes")
    ]
    shown: Annotated[
        str, Wire("Attributes that the login would get now, one on each line.", "after", title="Now", look="changes")
    ]
    attributes: bytes = b""
    outcome: Annotated[
        str,
        Wire(
            "Answer of the device, as in DisconnectSession; `over` if the session has ended before; empty if nothing "
            "was sent yet.",
            title="Answer",
        ),
    ] = ""
    error: Annotated[
        str, Wire("Name of the Error-Cause, or the reason why no answer came.", "errorText", title="Error")
    ] = ""


@dataclass(frozen=True, slots=True)
class Reauthorization:
    """A re-authorization of the live sessions of a domain's users."""

    id: Annotated[int, Wire("Id of the re-authorization.", "reauthorizationId")]
    domain_id: int
    state: Annotated[str, Wire("running, done, or stopped.", kind=RunState)]
    by_disconnect: Annotated[
        int, Wire("Whether sessions with other attributes end instead of being changed.", "disconnect", is_set)
    ]
    started_by: Annotated[str, Wire("Name of the admin who started it.", "startedBy", title="Started by")]
    started_at: Annotated[int, Wire("Start, ISO 8601 UTC.", "startedAt", iso, title="Started")]
    ended_at: Annotated[int | None, Wire("End, ISO 8601 UTC; empty while it runs.", "endedAt", iso, empty=True)]
    place: int
    after: int
    examined: Annotated[int, Wire("Number of live sessions that were examined.", title="Sessions")]
    undecided: Annotated[int, Wire("Number of sessions that could not be decided.")]
    changed: Annotated[int, Wire("Number of sessions that change.")] = 0
    done: Annotated[int, Wire("Number of these sessions whose device has acknowledged the request.")] = 0
    waiting: Annotated[int, Wire("Number of these sessions whose request was not sent yet.")] = 0
