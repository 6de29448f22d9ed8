"""A minimal LDAP server on loopback (RFC 4511). A test sets its replies.

    async with directory(Person("ann", "hello")) as server:
        server.url, server.binds

A search returns each person whose name occurs in the octets of the request; the filter is not parsed. A bind succeeds
with the person's password.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum

import trio
import trio.testing

SUCCESS, INVALID_CREDENTIALS = 0, 49
_BIND, _SEARCH, _UNBIND, _EXTENDED = 0x60, 0x63, 0x42, 0x77
_COMPARISON = re.compile(rb"\xa5.{1,5}\x04.{1,5}modifyTimestamp", re.DOTALL)  # greaterOrEqual
_ANSWERS = {_BIND: 0x61, _SEARCH: 0x65, _EXTENDED: 0x78}


class Manner(Enum):
    """The behaviour of the server on a connection."""

    ANSWERS = "answers"
    SILENT = "takes what comes and says nothing"
    HANGS_UP = "closes each connection at once"
    NONSENSE = "answers with octets that are no LDAP"
    DRIBBLES = "answers one octet at a time"


@dataclass
class Person:
    """An entry. refusal: the code and the text of the reply to every bind. attributes: the attributes other than
    sAMAccountName.
    """

    name: str
    password: str = "hello"
    refusal: tuple[int, str] | None = None
    attributes: dict[str, list[str]] = field(default_factory=dict)
    dn: str = ""

    def __post_init__(self) -> None:
        self.dn = self.dn or f"CN={self.name},OU=Staff,DC=example,DC=com"


@dataclass
class FakeDirectory:
    """The server. binds: the DN of each bind, in order. search_refusal: the code and the text of the reply to every
    search. compares: whether a search may compare times by >=; LLDAP refuses such a search. forgotten: the number of
    connections, from the first one, whose requests are ignored, as by a firewall that has forgotten them. ignored: it
    is set after the first such request.
    """

    people: list[Person]
    port: int = 0
    manner: Manner = Manner.ANSWERS
    binds: list[str] = field(default_factory=list)
    searches: int = 0
    connections: int = 0
    search_refusal: tuple[int, str] | None = None
    compares: bool = True
    forgotten: int = 0
    ignored: trio.Event = field(default_factory=trio.Event)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"ldap://127.0.0.1:{self.port}"

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        self.connections += 1
        number = self.connections
        with suppress(trio.BrokenResourceError):
            async with stream:
                await self._talk(stream, number)

    async def _talk(self, stream: trio.SocketStream, number: int) -> None:
        if self.manner is Manner.HANGS_UP:
            return
        pending = bytearray()
        while part := await stream.receive_some(65536):
            if number <= self.forgotten:
                self.ignored.set()
                continue
            pending += part
            if self.manner is Manner.NONSENSE:
                await stream.send_all(b"SSH-2.0-none of your business\r\n")
            while self.manner in (Manner.ANSWERS, Manner.DRIBBLES) and (message := _pull(pending)):
                answer = self._answer(message)
                if answer is None:
                    return
                for part in [answer] if self.manner is Manner.ANSWERS else map(bytes, zip(answer)):
                    await stream.send_all(part)
                    await trio.testing.wait_all_tasks_blocked()

    def _answer(self, message: bytes) -> bytes | None:
        number, (operation, body) = _number(message), _operation(message)
        if operation == _UNBIND:
            return None
        if operation == _BIND:
            return _message(number, _result(operation, *self._bind(body)))
        if operation == _SEARCH:
            self.searches += 1
            if self.search_refusal is not None:
                return _message(number, _result(operation, *self.search_refusal))
            if not self.compares and _COMPARISON.search(body):
                return _message(number, _result(operation, 53, "Unsupported user filter: GreaterOrEqual"))
            found = [person for person in self.people if person.name.encode() in body]
            return b"".join(_message(number, _entry(person)) for person in found) + _message(
                number, _result(operation, SUCCESS, "")
            )
        return _message(number, _result(_EXTENDED, 2, "no such operation"))

    def _bind(self, body: bytes) -> tuple[int, str]:
        _, version, rest = _value(body)
        _, dn, rest = _value(rest)
        _, password, _ = _value(rest)
        assert version == b"\x03"
        self.binds.append(dn.decode())
        for person in self.people:
            if person.dn == dn.decode():
                if person.refusal is not None:
                    return person.refusal
                return (SUCCESS, "") if password == person.password.encode() else (INVALID_CREDENTIALS, "80090308")
        return (SUCCESS, "") if not dn or password == b"service" else (INVALID_CREDENTIALS, "nobody")


@asynccontextmanager
async def directory(*people: Person) -> AsyncIterator[FakeDirectory]:
    """Serve the people on a free port of loopback until the block ends."""
    server = FakeDirectory(list(people))
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, server.serve, listeners)
        yield server
        nursery.cancel_scope.cancel()


# --- The subset of BER that LDAP uses (X.690 section 8)--------------------------------------------------------------


def _value(octets: bytes) -> tuple[int, bytes, bytes]:
    """Return the tag, the content and the rest of the first value. Raises IndexError if it is incomplete."""
    size, at = octets[1], 2
    if size & 0x80:
        at += size & 0x7F
        size = int.from_bytes(octets[2:at])
    if len(octets) < at + size:
        raise IndexError
    return octets[0], octets[at : at + size], octets[at + size :]


def _pull(pending: bytearray) -> bytes:
    """Remove the first complete message from `pending` and return its content. Return empty octets if the message is
    incomplete.
    """
    try:
        _, content, rest = _value(bytes(pending))
    except IndexError:
        return b""
    pending[:] = rest
    return content


def _number(message: bytes) -> bytes:
    return _value(message)[1]


def _operation(message: bytes) -> tuple[int, bytes]:
    tag, content, _ = _value(_value(message)[2])
    return tag, content


def push(tag: int, content: bytes = b"") -> bytes:
    """Return an element with its tag and length."""
    size = len(content)
    length = bytes((size,)) if size < 0x80 else b"\x84" + size.to_bytes(4)
    return bytes((tag,)) + length + content


def _message(number: bytes, operation: bytes) -> bytes:
    return push(0x30, push(0x02, number) + operation)


def control(name: bytes, *value: bytes) -> bytes:
    """Return the controls of a message. There is one control, with or without a value (RFC 4511 section 4.1.11)."""
    return push(0xA0, push(0x30, push(0x04, name) + b"".join(push(0x04, each) for each in value)))


def result_message(operation: int, controls: bytes = b"") -> bytes:
    """Return a message that reports success. operation: the tag of the answer."""
    body = push(0x0A, b"\0") + push(0x04) + push(0x04)
    return _message(b"\x02", push(operation, body) + controls)


def _result(operation: int, code: int, text: str) -> bytes:
    return push(_ANSWERS[operation], push(0x0A, bytes((code,))) + push(0x04, b"") + push(0x04, text.encode()))


def entry_message(person: Person) -> bytes:
    """Return the message with the entry of a person."""
    return _message(b"\x02", _entry(person))


def _entry(person: Person) -> bytes:
    attributes = {"sAMAccountName": [person.name], **person.attributes}
    listed = b"".join(
        push(0x30, push(0x04, name.encode()) + push(0x31, b"".join(push(0x04, each.encode()) for each in values)))
        for name, values in attributes.items()
    )
    return push(0x64, push(0x04, person.dn.encode()) + push(0x30, listed))
