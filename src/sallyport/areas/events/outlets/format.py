"""Formats for events and audit entries that are sent to other programs: fields, a line of JSON, a syslog message.

The formats contain no secrets.
"""

import json
import os
import re
import socket
from collections.abc import Sequence
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

from sallyport.areas.audit.repo import NumberedRow
from sallyport.areas.events.event import DomainEvent
from sallyport.base.answer import answer
from sallyport.base.clock import iso
from sallyport.base.log import IDENTITIES, Pseudonyms
from sallyport.base.wire import JSON
from sallyport.store.audit import HIDDEN

LOGIN: Final = "login"
AUDIT: Final = "audit"
FACILITIES: Final = {LOGIN: 10, AUDIT: 13}  # facilities `authpriv` and `log audit` (RFC 5424 section 6.2.1)
INFORMATIONAL: Final = 6
NOTICE: Final = 5
ENTERPRISE: Final = 32473  # the enterprise number for examples (RFC 5612)
MAX_LENGTH: Final = 6000
"""Maximum number of characters of a value in a syslog message. Most receivers accept messages of 8 KiB, and a datagram
holds less than 64 KiB."""
_LOGIN: Final = (
    *("eventId", "time", "domain", "user", "ip_address", "client_ip", "device_name", "station", "method", "factor"),
    *("decision", "appliedDecision", "wouldHaveBeen", "reason", "detail", "latencyMs", "role", "ssid", "port"),
    "traceId",
)
_OWN_NAMES: Final = {"device_name": "device"}
_ESCAPED: Final = re.compile(r'(["\\\]])')
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


Fields: TypeAlias = dict[str, JSON]
Entry: TypeAlias = DomainEvent | NumberedRow
AnyEntry = TypeVar("AnyEntry", Entry, DomainEvent)


def login_fields(event: DomainEvent, domain: str, pseudonyms: Pseudonyms | None) -> Fields:
    """Return the fields of an event. The keys are the names that GetAuthLog uses.

    domain: the name of the event's domain. pseudonyms: the pseudonyms that replace the names of people, or None.
    """
    shown = answer(event, domain=domain, nodes={})
    fields: Fields = {"type": LOGIN, **{_OWN_NAMES.get(name, name): shown[name] for name in _LOGIN}}
    if pseudonyms is not None:
        for name in IDENTITIES:
            fields[name] = pseudonyms.of(str(fields[name]))
    return fields


def audit_fields(entry: NumberedRow, domain: str, pseudonyms: Pseudonyms | None) -> Fields:
    """Return the fields of an audit entry. The keys are the names that audit/list uses.

    domain: the name of the entry's domain. pseudonyms: if they are not None, the target is replaced by a pseudonym, and
    the values of the changes are hidden, because the target and the values may contain names.
    """
    changes: dict[str, JSON] = json.loads(entry.changes)
    return {
        "type": AUDIT,
        "auditId": entry.id,
        "time": iso(entry.at),
        "orgId": entry.organization,
        "tenantId": entry.tenant,
        "domain": domain,
        "actorKind": entry.actor_kind,
        "actor": entry.actor,
        "tokenId": entry.token_id,
        "action": entry.action,
        "target": entry.target if pseudonyms is None else pseudonyms.of(entry.target),
        "changes": changes if pseudonyms is None else {name: [HIDDEN, HIDDEN] for name in changes},
        "requestId": entry.request_id or "",
    }


def by_time(entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Return the entries ordered by time. The order of the ids differs from the order of time, because a transaction
    may assign ids to its entries in any order."""
    return sorted(entries, key=attrgetter("at", "id"))


def as_json(fields: Fields) -> bytes:
    """Return fields as a line of JSON with a line end. Line breaks in names are escaped."""
    return json.dumps(fields, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def as_syslog(fields: Fields, host: str, *, is_json: bool = False) -> bytes:
    """Return fields as one message of RFC 5424, with all fields as structured data and a sentence as text.

    The MSGID is the type of the entry. is_json: the text is the JSON object, without a byte order mark, and there is no
    structured data.
    """
    kind = str(fields["type"])
    severity, summary = _summary_of_login(fields) if kind == LOGIN else _summary_of_change(fields)
    head = f"<{FACILITIES[kind] * 8 + severity}>1 {fields['time']} {host} sallyport {os.getpid()} {kind} "
    if is_json:
        return f"{head}- ".encode() + as_json({name: _bounded(value) for name, value in fields.items()}).rstrip(b"\n")
    data = " ".join(f'{name}="{_value(value)}"' for name, value in fields.items() if name not in {"type", "time"})
    text = f"{head}[{kind}@{ENTERPRISE} {data}] \ufeff{_clean(summary)}"
    return text.encode(errors="backslashreplace")


def _bounded(value: JSON) -> JSON:
    """Return a value with a text of at most MAX_LENGTH characters. A longer object becomes the start of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= MAX_LENGTH else text[:MAX_LENGTH]


def _summary_of_login(fields: Fields) -> tuple[int, str]:
    summary = f"{fields['appliedDecision']} {fields['user']} at {fields['device']}"
    severity = NOTICE if fields["appliedDecision"] == "reject" else INFORMATIONAL
    return severity, f"{summary}: {fields['reason']}" if fields["reason"] else summary


def _summary_of_change(fields: Fields) -> tuple[int, str]:
    return NOTICE, f"{fields['actor']}: {fields['action']} {fields['target']}"[:MAX_LENGTH]


def host_name() -> str:
    """Return the host name for a syslog header, in printable ASCII without spaces (RFC 5424 section 6.2.4)."""
    return re.sub(r"[^\x21-\x7e]", "", socket.gethostname())[:255] or "-"


def counted(message: bytes) -> bytes:
    """Return a message with its length in front (RFC 6587 section 3.4.1, RFC 5425 section 4.3)."""
    return f"{len(message)} ".encode() + message


def _value(value: JSON) -> str:
    r"""Return a value of structured data, with the characters `"`, `\` and `]` escaped (RFC 5424 section 6.3.3)."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else "" if value is None else str(value)
    return _ESCAPED.sub(r"\\\1", _clean(text[:MAX_LENGTH]))


def _clean(text: str) -> str:
    """Return a text without its control characters. With control characters, the input of a user could look like a
    separate message."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
