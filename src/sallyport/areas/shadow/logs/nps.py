"""Logs of NPS: DTS-compliant, IAS format and database-compatible format.

NPS writes a record for each packet. The answer has neither the User-Name nor the station, but the same Class as its
request. Sources: "Interpret NPS Database Format Log Files" and "Interpret IAS Format Log Files" of Microsoft, and "NPS
Reason Codes" (Event IDs 6272 to 6280).
"""

import csv
import html
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from sallyport.areas.shadow.logs.record import Frame, OldLogin, Pending, clean, request_attributes
from sallyport.areas.shadow.shadow_login import ACCEPT, REJECT, Cause
from sallyport.base.clock import SECOND

Fields = Mapping[str, str]
MAX_EVENT: Final = 65_536
REQUEST, ACCEPTED, REJECTED, CHALLENGED = "1", "2", "3", "11"
_ELEMENT: Final = re.compile(r'<([A-Za-z0-9_-]{1,64})(?: data_type="\d")?>([^<]*)</\1>')
_MOMENT: Final = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")
_COLUMNS: Final = (
    *("Computer-Name", "Event-Source", "Date", "Time", "Packet-Type", "User-Name", "Fully-Qualifed-User-Name"),
    *("Called-Station-Id", "Calling-Station-Id", "Callback-Number", "Framed-IP-Address", "NAS-Identifier"),
    *("NAS-IP-Address", "NAS-Port", "Client-Vendor", "Client-IP-Address", "Client-Friendly-Name", "Event-Timestamp"),
    *("Port-Limit", "NAS-Port-Type", "Connect-Info", "Framed-Protocol", "Service-Type", "Authentication-Type"),
    *("NP-Policy-Name", "Reason-Code", "Class"),
)
"""The first columns of the database-compatible format."""
_NUMBERS: Final = {
    "1": "User-Name", "4": "NAS-IP-Address", "5": "NAS-Port", "6": "Service-Type", "7": "Framed-Protocol",
    "25": "Class", "30": "Called-Station-Id", "31": "Calling-Station-Id", "32": "NAS-Identifier",
    "61": "NAS-Port-Type", "66": "Tunnel-Client-Endpoint", "77": "Connect-Info", "87": "NAS-Port-Id",
    "95": "NAS-IPv6-Address", "4108": "Client-IP-Address", "4127": "Authentication-Type",
    "4128": "Client-Friendly-Name", "4129": "SAM-Account-Name", "4130": "Fully-Qualifed-User-Name",
    "4132": "EAP-Friendly-Name", "4136": "Packet-Type", "4142": "Reason-Code", "4149": "NP-Policy-Name",
    "4154": "Proxy-Policy-Name",
}  # fmt: skip
"""The attributes of the IAS format by their numbers: those of the RFCs, and those of NPS from 4096 on."""
_SAME: Final = {"Tunnel-Client-Endpt": "Tunnel-Client-Endpoint", "Cisco-AV-Pair": "Cisco-AVPair"}
_METHODS: Final = {
    "1": "pap", "2": "chap", "3": "mschap", "4": "mschapv2", "5": "eap", "7": "none", "9": "mschap",
    "10": "mschapv2", "11": "eap-peap",
}  # fmt: skip
_REASONS: Final = {
    "7": "no such domain", "8": "no such user", "16": "wrong user name or password", "18": "method not supported",
    "20": "LAN Manager authentication is off", "21": "refused by an extension", "22": "EAP type not processed",
    "23": "error in EAP", "33": "password must be changed", "34": "account disabled", "35": "account expired",
    "36": "account locked", "37": "outside of the logon hours", "38": "account restricted",
    "48": "no network policy matches", "49": "no connection request policy matches", "65": "denied by the policy",
    "66": "method not enabled in the policy", "67": "other Calling-Station-Id", "68": "outside of the allowed time",
    "69": "other Called-Station-Id", "70": "other NAS-Port-Type", "73": "certificate without the required usage",
    "96": "authentication ended early", "257": "revocation not checked", "258": "revocation not checked",
    "259": "revocation server offline", "262": "certificate not complete", "265": "authority not trusted",
}  # fmt: skip
_FIRST_FACTOR: Final = frozenset(
    {*("8", "16", "20", "22", "23", "32", "33", "34", "35", "36", "37", "38", "64", "73", "96", "97")}
    | {str(number) for number in range(256, 280)}
)
_POLICY: Final = frozenset({"7", "18", "21", "48", "49", "65", "66", "67", "68", "69", "70", "71", "80", "112"})


class NpsReader:
    """The reader of all formats of NPS. Each record tells its format: XML, a quoted first field, or an address."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._pending = Pending[tuple[Fields, str]](frame.tally)
        self._event = ""

    def read(self, line: str, place: str) -> Iterator[OldLogin]:
        """Yield the login that a record completes. A DTS event may have several lines."""
        text = line.strip()
        if self._event or text.startswith("<"):
            yield from self._xml(text, place)
        elif text:
            yield from self._record(_cells(text), place)

    def end(self) -> Iterator[OldLogin]:
        """Count an event that is cut off, and requests without an answer."""
        if self._event:
            self._frame.tally.note_unread("the end of the file")
            self._event = ""
        self._pending.end()
        yield from ()

    def _xml(self, text: str, place: str) -> Iterator[OldLogin]:
        if text.startswith("<Event>") and self._event:  # the event before was cut off
            self._frame.tally.note_unread(place)
            self._event = ""
        if not self._event and not text.startswith("<Event>"):
            if not text.startswith(("<?xml", "<Events", "</Events")):
                self._frame.tally.note_unread(place)
            return
        self._event += text
        if len(self._event) > MAX_EVENT:
            self._frame.tally.note_unread(place)
            self._event = ""
        elif self._event.endswith("</Event>"):
            event, self._event = self._event, ""
            yield from self._record(_elements(event), place)

    def _record(self, fields: Fields, place: str) -> Iterator[OldLogin]:
        kind = fields.get("Packet-Type", "")
        at = self._moment(fields.get("Timestamp", ""))
        if at is None or not kind:
            return self._frame.tally.note_unread(place)
        own, sender = fields.get("Class", ""), ("client", fields.get("Client-IP-Address", ""))
        if kind == REQUEST:
            self._pending.put(own or sender, (fields, place))
        elif kind in (ACCEPTED, REJECTED, CHALLENGED):
            request, asked_at = self._pending.take(own, sender) or (fields, place)
            if kind != CHALLENGED:
                login = _login(request, fields, at, asked_at)
                if login is None:
                    self._frame.tally.unasked += 1
                else:
                    yield login
        return None

    def _moment(self, text: str) -> int | None:
        """Return a time in microseconds, or None. NPS writes month, day, year, in the local time of its host."""
        found = _MOMENT.fullmatch(text)
        if found is None:
            return None
        month, day, year, hour, minute, second = (int(found[number]) for number in range(1, 7))
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=self._frame.zone)
            return int(moment.timestamp()) * SECOND + int((found[7] or "").ljust(6, "0"))
        except (ValueError, OverflowError):  # such as 30 February, or year 1 without a time zone
            return None


def _login(request: Fields, answer: Fields, at: int, place: str) -> OldLogin | None:
    """Return a login, or None if no record names the user. request: the fields of the answer if there is no request."""
    user = request.get("User-Name") or answer.get("SAM-Account-Name") or answer.get("Fully-Qualifed-User-Name") or ""
    if not user.strip():
        return None
    code, is_refused = answer.get("Reason-Code", ""), answer.get("Packet-Type") == REJECTED
    reason = _REASONS.get(code, "") if is_refused else ""
    return OldLogin(
        at=at,
        user=clean(user),
        answer=REJECT if is_refused else ACCEPT,
        client=clean(answer.get("Client-IP-Address") or request.get("Client-IP-Address") or ""),
        attributes=request_attributes(request) if request is not answer else (),
        method=_method(answer),
        cause=_cause(code) if is_refused else Cause.UNKNOWN,
        reason=f"{code}: {reason}".rstrip(": ") if is_refused else "",
        policy=clean(answer.get("NP-Policy-Name") or answer.get("Proxy-Policy-Name") or ""),
        place=place,
    )


def _cause(code: str) -> Cause:
    if code in _FIRST_FACTOR:
        return Cause.FIRST_FACTOR
    return Cause.POLICY if code in _POLICY else Cause.UNKNOWN


def _method(fields: Fields) -> str:
    method, inner = _METHODS.get(fields.get("Authentication-Type", ""), ""), fields.get("EAP-Friendly-Name", "")
    folded = inner.casefold()
    if not method.startswith("eap"):
        return method
    if "secured password" in folded or "mschap" in folded:
        return "eap-peap-mschapv2" if method == "eap-peap" else "eap-mschapv2"
    return "eap-tls" if "certificate" in folded and method == "eap" else method


def _elements(event: str) -> Fields:
    """Return the elements of a DTS event by name. Entities that XML does not define are left as they are."""
    found: dict[str, str] = {}
    for name, value in _ELEMENT.findall(event):
        key, text = _SAME.get(name, name), html.unescape(value) if "&" in value else value
        found[key] = f"{found[key]}\n{text}" if key in found and key != "Class" else text
    return found


def _cells(text: str) -> Fields:
    """Return the fields of a record in one of the comma-separated formats; empty if it is in neither."""
    try:
        cells = next(csv.reader([text], strict=True), [])
    except csv.Error:
        return {}
    if text.startswith('"'):
        found = {name: value for name, value in zip(_COLUMNS, cells, strict=False) if value}
        return found | {"Timestamp": f"{found.get('Date', '')} {found.get('Time', '')}"}
    if len(cells) < 6 or len(cells) % 2:
        return {}
    found = {
        _NUMBERS[number]: value for number, value in zip(cells[6::2], cells[7::2], strict=True) if number in _NUMBERS
    }
    if cells[0]:
        found.setdefault("NAS-IP-Address", cells[0])
    if cells[1]:
        found.setdefault("User-Name", cells[1])
    return found | {"Timestamp": f"{cells[2]} {cells[3]}"}
