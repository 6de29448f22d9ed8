"""Logs of Cisco ISE: syslog messages of the categories Passed Authentications and Failed Attempts.

A long message has several segments with the same number: `NUMBER SEGMENTS SEGMENT`. Only the first one has the time and
the code. Source: "Cisco ISE Syslogs" and "Message Catalog".
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from sallyport.areas.shadow.logs.record import Frame, OldLogin, Pending, clean, request_attributes
from sallyport.areas.shadow.shadow_login import ACCEPT, REJECT, Cause
from sallyport.base.clock import SECOND

MAX_MESSAGE: Final = 65_536
_HEAD: Final = re.compile(
    r"(?P<host>\S+) CISE_(?P<kind>Passed_Authentications|Failed_Attempts) (?P<number>\d{1,20}) (?P<all>\d{1,3}) "
    r"(?P<at>\d{1,3}) (?P<rest>.*)"
)
_FIRST: Final = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,6}))? ([+-])(\d\d):(\d\d) \d+ (\d+) \w+ ([^:]*): ([^,]*),?(.*)"
)
_CODE: Final = re.compile(r"\d{5}")
_SPLIT: Final = re.compile(r"(?<!\\), ?")
_SERVICES: Final = {"login": "1", "framed": "2", "outbound": "5", "authenticate only": "8", "call check": "10"}
_PORTS: Final = {"wireless - ieee 802.11": "19", "ethernet": "15", "virtual": "5", "async": "0"}
_METHODS: Final = {"eap-tls": "eap-tls", "peap (eap-mschapv2)": "eap-peap-mschapv2", "peap (eap-tls)": "eap-peap-tls"}
_FAILED: Final = ("12", "22", "24", "11")
"""The first digits of the reasons that concern EAP, the identity and its store; those of policies begin with 15."""


class IseReader:
    """The reader of syslog messages of ISE."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._segments = Pending[tuple[dict[int, str], str]](frame.tally)

    def read(self, line: str, place: str) -> Iterator[OldLogin]:
        """Yield the login that a message completes."""
        found = _HEAD.search(line)
        if found is None:
            if "CISE_Passed_Auth" in line or "CISE_Failed_Att" in line:
                self._frame.tally.note_unread(place)
            return
        key, count, at = (found["host"], found["number"]), int(found["all"]), int(found["at"])
        parts, first = self._segments.take(key) or ({}, place)
        parts[at] = found["rest"]
        if len(parts) < count and sum(map(len, parts.values())) < MAX_MESSAGE:
            self._segments.put(key, (parts, first))
            return
        text = "".join(parts[number] for number in sorted(parts))
        yield from self._message(text, first, passed=found["kind"] == "Passed_Authentications")

    def end(self) -> Iterator[OldLogin]:
        """Count messages without all their segments."""
        self._segments.end()
        yield from ()

    def _message(self, text: str, place: str, *, passed: bool) -> Iterator[OldLogin]:
        head = _FIRST.match(text)
        if head is None:
            return self._frame.tally.note_unread(place)
        day, fraction, sign, hours, minutes, _code, _kind, _text, rest = head.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
        try:
            at = int((datetime.fromisoformat(f"{day}+00:00") - offset).timestamp()) * SECOND
        except (ValueError, OverflowError):  # such as 30 February
            return self._frame.tally.note_unread(place)
        at += int((fraction or "").ljust(6, "0"))
        fields = _fields(rest)
        if fields.get("Protocol", "Radius").casefold() != "radius":
            return None
        user = fields.get("User-Name") or fields.get("UserName") or ""
        if not user:
            self._frame.tally.unasked += 1
            return None
        reason = fields.get("FailureReason", "")
        code = _CODE.match(reason)
        yield OldLogin(
            at=at,
            user=clean(user.replace("\\\\", "\\")),
            answer=ACCEPT if passed else REJECT,
            client=clean(fields.get("Device IP Address") or fields.get("NAS-IP-Address") or ""),
            attributes=request_attributes(_request(fields)),
            method=_method(fields),
            cause=Cause.UNKNOWN if passed else _cause(code[0] if code else ""),
            reason="" if passed else clean(reason),
            policy=clean(fields.get("AuthorizationPolicyMatchedRule") or fields.get("ISEPolicySetName") or ""),
            place=place,
        )
        return None


def _fields(text: str) -> dict[str, str]:
    """Return the fields of a message. A comma in a value has a backslash before it."""
    found: dict[str, str] = {}
    for part in _SPLIT.split(text):
        name, sign, value = part.partition("=")
        if sign:
            key, value = name.strip(), value.replace("\\,", ",").strip()
            found[key] = f"{found[key]}\n{value}" if key == "cisco-av-pair" and key in found else value
    return found


def _request(fields: dict[str, str]) -> dict[str, str]:
    """Return the fields of a request by the names of their attributes."""
    found = {**fields, "Cisco-AVPair": fields.get("cisco-av-pair", "")}
    for name, known in (("Service-Type", _SERVICES), ("NAS-Port-Type", _PORTS)):
        if name in found:
            found[name] = known.get(found[name].casefold(), found[name])
    return found


def _method(fields: dict[str, str]) -> str:
    if fields.get("UseCase") == "Host Lookup":
        return "none"
    eap, tunnel = fields.get("EapAuthentication", "").casefold(), fields.get("EapTunnel", "").casefold()
    if eap or tunnel:
        return _METHODS.get(f"{tunnel} ({eap})" if tunnel else eap, "eap")
    method = fields.get("AuthenticationMethod", "").casefold()
    return {"pap_ascii": "pap", "chap": "chap", "mschapv2": "mschapv2", "mschapv1": "mschap"}.get(method, "")


def _cause(code: str) -> Cause:
    if code.startswith("15"):
        return Cause.POLICY
    return Cause.FIRST_FACTOR if code.startswith(_FAILED) else Cause.UNKNOWN
