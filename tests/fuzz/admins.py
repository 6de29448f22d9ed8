"""What admins and their browsers send: forms, files of stations, keys and certificates."""

import contextlib
import json
from functools import cache
from typing import Final
from urllib.parse import urlencode

import trio
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import Message

from sallyport.areas.policy.bypass.bodies import ImportBypassStations
from sallyport.areas.policy.bypass.files import FILE_COLUMNS, message_with_line, parts_of, split_tags, stations_of
from sallyport.base.errors import Forbidden, Invalid
from sallyport.console.guard import FORM, FORM_LIMIT, TOKEN, Guard, form_token
from sallyport.outgoing import pem as keys
from sallyport.outgoing.errors import PemError
from sallyport.shell.files import rows_of
from sallyport.web.handling import BodyShape
from sallyport.web.operation import unknown_fields
from sallyport.web.people.visit import MAX_FIELDS, form_of
from tests.fuzz.inputs import as_text

_KEY: Final = "the key in the cookie"
_HOST: Final = "sallyport.example"
MAX_FIELDS_OF_CONSOLE: Final = 2000


def forms(octets: bytes) -> None:
    """A form of the console, and one of the pages for people, has fields or is refused. It has no more fields than its
    limit. The fields have the same meaning after they are sent again. A form without its token is refused."""
    guard, token = Guard(""), form_token(_KEY)
    found = _fields(guard, octets + b"&" + urlencode({TOKEN: token}).encode())
    if found is not None and found.get(TOKEN) == token:
        assert len(found.multi_items()) <= MAX_FIELDS_OF_CONSOLE
        assert _fields(guard, urlencode(found.multi_items()).encode()) == found
    if (bare := _fields(guard, octets)) is not None:
        assert bare[TOKEN] == token
    with contextlib.suppress(Invalid):
        people = trio.run(form_of, _request(octets), f"https://{_HOST}")
        assert len(people) <= MAX_FIELDS
        assert trio.run(form_of, _request(urlencode(people).encode()), f"https://{_HOST}") == people


def _fields(guard: Guard, octets: bytes) -> QueryParams | None:
    """Return the fields of a form of the console, or None if it is refused."""
    with contextlib.suppress(Invalid, Forbidden):
        return trio.run(guard.fields, _request(octets), _KEY, FORM_LIMIT)
    return None


def _request(octets: bytes) -> Request:
    """Return a form that a page of this service has sent, in two pieces."""
    parts = [octets[:7], octets[7:]]

    async def receive() -> Message:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    headers = {"host": _HOST, "content-type": FORM, "sec-fetch-site": "same-origin"}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": raw}, receive)


@cache
def _shape() -> BodyShape[ImportBypassStations]:
    return BodyShape(ImportBypassStations, ImportBypassStations, unknown_fields(("/ad/ImportBypassStations",)))


def bypass(octets: bytes) -> None:
    """A file of stations has rows, or ValueError. Its parts have all rows in order. Stations that the operation refuses
    have a message."""
    rows = []
    with contextlib.suppress(ValueError):
        rows = rows_of(as_text(octets), FILE_COLUMNS)
        split_tags(rows)
    parts = list(parts_of(rows))
    assert [row for part in parts for row in part] == rows
    for part in parts:
        body = {"orgId": 1, "tenantId": 1, "domainId": 1, "stations": stations_of(part)}
        try:
            _shape().parse(json.dumps(body).encode())
        except Invalid as error:
            assert message_with_line(error, part)


def pem(octets: bytes) -> None:
    """A private key and certificates are read, or PemError. They are the same after they are written again."""
    text = as_text(octets)
    with contextlib.suppress(PemError):
        once = keys.key_pem(text)
        assert keys.key_pem(once) == once
    with contextlib.suppress(PemError):
        found = keys.certificates_pem(text)
        assert keys.certificates_pem(found) == found
