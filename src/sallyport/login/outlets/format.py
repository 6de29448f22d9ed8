"""An event for people's and other programs' eyes: fields, a line of JSON, a syslog message. Secrets are in no event."""

import json
import os
import re
import socket
from typing import Final

from sallyport.base.clock import iso
from sallyport.base.log import IDENTITIES, Pseudonyms
from sallyport.login.outlets.repo import Decided

AUTHPRIV: Final = 10  # facility of security messages that are not for everybody (RFC 5424 section 6.2.1)
INFORMATIONAL: Final = 6
NOTICE: Final = 5
SD_ID: Final = "login@32473"  # the enterprise number of examples (RFC 5612): this software has none of its own
_ESCAPED: Final = re.compile(r'(["\\\]])')
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def fields_of(event: Decided, domain: str, pseudonyms: Pseudonyms | None) -> dict[str, str | int | float]:
    """An event by name, as GetAuthLog tells it. domain: its name. pseudonyms: stand for people where they are given."""
    fields: dict[str, str | int | float] = {
        "eventId": event.id,
        "time": iso(event.at),
        "domain": domain,
        "user": event.user_name,
        "ip_address": event.ip_address,
        "client_ip": event.client_ip,
        "device": event.device_name,
        "station": event.station,
        "method": event.method,
        "factor": event.factor,
        "decision": event.decision,
        "appliedDecision": event.applied_decision,
        "wouldHaveBeen": event.would_have_been,
        "reason": event.reason,
        "latencyMs": event.latency_us / 1000,
    }
    if pseudonyms is not None:
        for name in IDENTITIES:
            fields[name] = pseudonyms.of(str(fields[name]))
    return fields


def as_json(fields: dict[str, str | int | float]) -> bytes:
    """A line of JSON with its end; a line break in a name is escaped."""
    return json.dumps(fields, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def as_syslog(fields: dict[str, str | int | float], host: str) -> bytes:
    """One message of RFC 5424: everything as structured data, and a sentence."""
    severity = NOTICE if fields["appliedDecision"] == "reject" else INFORMATIONAL
    data = " ".join(f'{name}="{_value(value)}"' for name, value in fields.items() if name != "time")
    told = f"{fields['appliedDecision']} {fields['user']} at {fields['device']}"
    if fields["reason"]:
        told += f": {fields['reason']}"
    head = f"<{AUTHPRIV * 8 + severity}>1 {fields['time']} {host} sallyport {os.getpid()} login [{SD_ID} {data}] "
    return head.encode(errors="backslashreplace") + b"\xef\xbb\xbf" + _clean(told).encode(errors="backslashreplace")


def host_name() -> str:
    """This machine as a syslog header takes it: printable ASCII, no space (RFC 5424 section 6.2.4)."""
    return re.sub(r"[^\x21-\x7e]", "", socket.gethostname())[:255] or "-"


def counted(message: bytes) -> bytes:
    """A message with its length before it (RFC 6587 section 3.4.1, RFC 5425 section 4.3)."""
    return f"{len(message)} ".encode() + message


def _value(value: str | float) -> str:
    """Of structured data: quotes, backslashes and closing brackets are escaped (RFC 5424 section 6.3.3)."""
    return _ESCAPED.sub(r"\\\1", _clean(str(value)))


def _clean(text: str) -> str:
    """Without control characters: what a user typed must not look like another message."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
