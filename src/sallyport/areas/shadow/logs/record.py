"""A login in the log of another server, and what the readers of all formats have in common."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final, Generic, Protocol, TypeVar

from sallyport.areas.shadow.shadow_login import (
    ACCEPT,
    MAX_ATTRIBUTES,
    MAX_TEXT,
    MAX_VALUE,
    REPLY_ATTRIBUTES,
    Cause,
    OldAnswer,
)
from sallyport.base.clock import iso
from sallyport.base.wire import Row

MAX_PENDING: Final = 20_000
"""Maximum number of requests that wait for their answer in a log. The oldest is left out."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
ValueT = TypeVar("ValueT")

REQUEST_ATTRIBUTES: Final = (
    *("NAS-IP-Address", "NAS-IPv6-Address", "NAS-Identifier", "NAS-Port", "NAS-Port-Id", "NAS-Port-Type"),
    *("Called-Station-Id", "Calling-Station-Id", "Service-Type", "Framed-Protocol", "Connect-Info"),
    *("Tunnel-Client-Endpoint", "Cisco-AVPair", "Aruba-Essid-Name", "Ruckus-SSID"),
)
"""The attributes of requests that a record keeps, by their names in the dictionary."""
_KEPT: Final = {name.casefold(): name for name in REQUEST_ATTRIBUTES}


@dataclass(frozen=True, slots=True)
class OldLogin:
    """A login and the answer of another server.

    at: the time in microseconds. client: the address or name of the RADIUS client. attributes: attributes of the
    request as texts `NAME=VALUE`. reason: why the server refused, in its words. policy: its policy that decided. place:
    the file and the line. replies: the attributes of the Access-Accept that a policy sets, as texts `NAME=VALUE`; None
    if the log does not have them.
    """

    at: int
    user: str
    answer: OldAnswer
    client: str
    attributes: Sequence[str] = ()
    method: str = ""
    cause: Cause = Cause.UNKNOWN
    reason: str = ""
    policy: str = ""
    place: str = ""
    replies: Sequence[str] | None = None

    def body(self) -> Row:
        """Return the login as the API takes it."""
        return {
            "at": iso(self.at),
            "user": self.user,
            "answer": self.answer.value,
            "client": self.client,
            "attributes": list(self.attributes),
            "method": self.method,
            "cause": self.cause.value,
            "reason": self.reason,
            "policy": self.policy,
            "place": self.place,
            **({} if self.replies is None else {"replyAttributes": list(self.replies)}),
        }


@dataclass(slots=True)
class Tally:
    """What a reader has read. lines: all lines. unread: lines that it does not understand. unanswered: requests without
    an answer. unasked: answers without a request, and without the name of a user."""

    lines: int = 0
    unread: int = 0
    unanswered: int = 0
    unasked: int = 0
    logins: int = 0
    first_unread: list[str] = field(default_factory=list)

    def note_unread(self, place: str) -> None:
        """Count a line that the reader does not understand."""
        self.unread += 1
        if len(self.first_unread) < 3:
            self.first_unread.append(place)


class LogReader(Protocol):
    """A reader of one format."""

    def read(self, line: str, place: str) -> Iterator[OldLogin]:
        """Yield the logins that are complete with this line. place: the file and the line."""

    def end(self) -> Iterator[OldLogin]:
        """Yield the logins that are complete with the end of a file."""


class Pending(Generic[ValueT]):
    """Requests that wait for their answer, by a key; at most MAX_PENDING."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._waiting = OrderedDict[object, ValueT]()

    def put(self, key: object, value: ValueT) -> None:
        """Store a request. An earlier one with the same key had no answer."""
        if self._waiting.pop(key, None) is not None or len(self._waiting) >= MAX_PENDING:
            self._tally.unanswered += 1
        if len(self._waiting) >= MAX_PENDING:
            self._waiting.popitem(last=False)
        self._waiting[key] = value

    def take(self, *keys: object) -> ValueT | None:
        """Remove and return the request with the first of the keys that has one, or return None."""
        for key in keys:
            if (found := self._waiting.pop(key, None)) is not None:
                return found
        return None

    def end(self) -> None:
        """Count the requests that were not answered."""
        self._tally.unanswered += len(self._waiting)
        self._waiting.clear()


@dataclass(frozen=True, slots=True)
class Frame:
    """What a reader needs beside the lines. zone: the time zone of times without one; None for that of this
    host."""

    zone: tzinfo | None
    tally: Tally


def clean(text: str, most: int = MAX_TEXT) -> str:
    """Return a text without control characters, and with at most `most` characters."""
    return _CONTROL.sub(" ", text.strip())[:most].strip()


_REPLIES: Final = {name.casefold(): name for name in REPLY_ATTRIBUTES}


def request_attributes(fields: Mapping[str, str]) -> list[str]:
    """Return the attributes of a request that a record keeps, as texts `NAME=VALUE`. fields: all attributes by name;
    several values of one attribute are separated by a line feed."""
    return _texts(fields, _KEPT)


def reply_attributes(fields: Mapping[str, str]) -> list[str]:
    """Return the attributes of an Access-Accept that a record keeps; see `request_attributes`."""
    return _texts(fields, _REPLIES)


def _texts(fields: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    found = list[str]()
    for name, value in fields.items():
        kept = names.get(name.casefold())
        if kept is not None:
            found += [f"{kept}={text}" for each in value.split("\n") if (text := clean(each, MAX_VALUE))]
    return found[:MAX_ATTRIBUTES]


def is_accept(answer: OldAnswer) -> bool:
    """Return whether the other server admitted the login."""
    return answer is ACCEPT
