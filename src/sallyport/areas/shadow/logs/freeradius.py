r"""Logs of FreeRADIUS: detail files, the lines about logins in `radius.log`, and lines of the module linelog.

A detail file has a block for each packet (`rlm_detail`). With `log_packet_header = yes`, a block names the addresses
and ports of its packet, by which a reply finds its request. Without it, the reply finds the last request with the same
User-Name. An Accounting-Request that starts a session shows that its login was accepted.

A line of linelog is free text. This reader understands lines of `NAME=VALUE`, separated by tabs, after a time:

    format = "%S\tPacket-Type=%{reply:Packet-Type}\tUser-Name=%{User-Name}\tCalling-Station-Id=%{Calling-Station-Id}..."

FreeRADIUS 3 writes such a `\t` as these two characters. It separates only before `NAME=`, because a user name may be
`CORP\tom`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from sallyport.areas.shadow.logs.record import Frame, OldLogin, Pending, clean, reply_attributes, request_attributes
from sallyport.areas.shadow.shadow_login import ACCEPT, REJECT, Cause, OldAnswer
from sallyport.base.clock import SECOND

Fields = Mapping[str, str]
MAX_BLOCK: Final = 500
"""Maximum number of lines of one packet."""
_PAIR: Final = re.compile(r'\s+([A-Za-z0-9_.-]{1,80})(?::\d{1,2})? [:+]?= (?:"(.*)"|(.*))')
_LOGIN: Final = re.compile(
    r"(?P<at>\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}) : Auth: (?:\(\d+\) +)?"
    r"(?P<kind>Login OK|Login incorrect|Invalid user)(?: \((?P<why>.*?)\))?: \[(?P<user>.*?)\] "
    r"\(from client (?P<client>\S+) port (?P<port>\d+)(?: cli (?P<cli>\S+))?.*?\)"
)
_TAB: Final = re.compile(r"\t|\\t(?=[A-Z][A-Za-z0-9-]{0,60}=)")
_ANSWERS: Final = {"Access-Accept": ACCEPT, "Access-Reject": REJECT}
_HIDDEN: Final = ("password", "secret", "challenge", "response", "eap-message", "state")


class DetailReader:
    """The reader of detail files. Requests and replies may be in one file, or in several that are read together."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._pending = Pending[tuple[Fields, str]](frame.tally)
        self._head, self._place, self._lines = "", "", 0
        self._fields: dict[str, str] = {}

    def read(self, line: str, place: str) -> Iterator[OldLogin]:
        """Yield the login that a line completes. A packet ends with an empty line."""
        if not line.strip():
            yield from self._block()
        elif not line[0].isspace():
            yield from self._block()
            self._head, self._place = line.strip(), place
        elif (pair := _PAIR.fullmatch(line.rstrip())) is not None and self._head and self._lines < MAX_BLOCK:
            self._lines += 1
            name, value = pair[1], pair[2] if pair[2] is not None else pair[3]
            if not any(word in name.casefold() for word in _HIDDEN):
                known = self._fields.get(name)
                self._fields[name] = value if known is None else f"{known}\n{value}"
        else:
            self._frame.tally.note_unread(place)

    def end(self) -> Iterator[OldLogin]:
        """Yield the login of the last packet."""
        yield from self._block()
        self._pending.end()

    def _block(self) -> Iterator[OldLogin]:
        fields, head, place = self._fields, self._head, self._place
        self._fields, self._head, self._lines = {}, "", 0
        if not head:
            return
        at, kind = _moment(fields.get("Timestamp", ""), head, self._frame), fields.get("Packet-Type", "")
        if at is None:
            return self._frame.tally.note_unread(place)
        if kind == "Access-Request":
            self._pending.put(_source(fields, "Src") or fields.get("User-Name"), (fields, place))
        elif kind in _ANSWERS or kind == "Access-Challenge":
            request, asked = self._pending.take(_source(fields, "Dst"), fields.get("User-Name")) or ({}, place)
            if kind == "Access-Challenge":
                return None
            reason, replies = (
                fields.get("Reply-Message", ""),
                reply_attributes(fields) if kind == "Access-Accept" else None,
            )
            yield from self._login(request or fields, _ANSWERS[kind], at, asked, reason, replies)
        elif fields.get("Acct-Status-Type") in ("Start", "1"):
            yield from self._login(fields, ACCEPT, at, place)
        return None

    def _login(
        self,
        fields: Fields,
        answer: OldAnswer,
        at: int,
        place: str,
        reason: str = "",
        replies: Sequence[str] | None = None,
    ) -> Iterator[OldLogin]:
        login = _login(fields, answer, at, place, reason, replies)
        if login is None:
            self._frame.tally.unasked += 1
        else:
            yield login


class LineReader:
    """The reader of `radius.log` and of lines of linelog."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def read(self, line: str, place: str) -> Iterator[OldLogin]:
        """Yield the login of a line."""
        text = line.strip()
        if (found := _LOGIN.match(text)) is not None:
            at = _moment("", found["at"], self._frame)
            pairs = {"Calling-Station-Id": found["cli"] or "", "NAS-Port": found["port"]}
            fields = {"User-Name": _name(found["user"]), "Client": found["client"], **pairs}
            accepted = found["kind"] == "Login OK"
            login = at and _login(
                fields, ACCEPT if accepted else REJECT, at, place, "" if accepted else found["why"] or found["kind"]
            )
            if login:
                yield login
        elif "\t" in text or "\\t" in text:
            yield from self._pairs(text, place)
        elif text and ": Auth:" in text:
            self._frame.tally.note_unread(place)

    def end(self) -> Iterator[OldLogin]:
        """Yield nothing, because each line is whole."""
        yield from ()

    def _pairs(self, text: str, place: str) -> Iterator[OldLogin]:
        head, *parts = _TAB.split(text)
        fields = dict[str, str]()
        for name, sign, value in (part.partition("=") for part in parts):
            if sign and value:
                fields.setdefault(name, value)
        at, answer = _moment("", head, self._frame), _ANSWERS.get(fields.get("Packet-Type", ""))
        if at is None or (answer is None and fields.get("Packet-Type") != "Access-Challenge"):
            self._frame.tally.note_unread(place)
        elif answer is not None and (login := _login(fields, answer, at, place, fields.get("Reason", ""))) is not None:
            yield login


def _login(
    fields: Fields, answer: OldAnswer, at: int, place: str, reason: str = "", replies: Sequence[str] | None = None
) -> OldLogin | None:
    user = fields.get("User-Name", "").split("\n")[0]
    client = fields.get("Packet-Src-IP-Address") or fields.get("Client-IP-Address") or fields.get("Client") or ""
    if not user.strip():
        return None
    first = answer is REJECT and any(word in reason.casefold() for word in ("incorrect", "password", "invalid user"))
    return OldLogin(
        at=at,
        user=clean(user),
        answer=answer,
        client=clean(client or fields.get("NAS-IP-Address", "")),
        attributes=request_attributes(fields),
        method=clean(fields.get("Method", ""), 32).casefold(),
        cause=Cause.FIRST_FACTOR if first else Cause.UNKNOWN,
        reason=clean(reason) if answer is REJECT else "",
        place=place,
        replies=replies,
    )


def _name(text: str) -> str:
    """Return the user of `[USER/...]`. What follows the slash may be a password (`auth_badpass`)."""
    at = text.find("/", len("host/") if text.startswith("host/") else 0)
    return text if at < 0 else text[:at]


def _source(fields: Fields, side: str) -> tuple[str, str] | None:
    address = fields.get(f"Packet-{side}-IP-Address") or fields.get(f"Packet-{side}-IPv6-Address")
    port = fields.get(f"Packet-{side}-Port")
    return (address, port) if address and port else None


def _moment(timestamp: str, head: str, frame: Frame) -> int | None:
    """Return a time in microseconds, or None. timestamp: seconds since 1970. head: `Sun Nov 29 10:00:00 2026`, or
    `2026-11-29 10:00:00`."""
    if timestamp.isdecimal() and len(timestamp) < 12:
        return int(timestamp) * SECOND
    for form in ("%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S"):
        try:
            moment = datetime.strptime(head.strip(), form).replace(tzinfo=frame.zone)
            return int(moment.timestamp()) * SECOND
        except (ValueError, OverflowError):  # of another form, or without a time zone in year 1
            continue
    return None
