"""One LDAP conversation over an open stream: a bind, then searches.

A connection has no task of its own: it reads from the stream only while a request waits for its answer. After any
failure, and after a cancellation, it is closed. Referrals are neither followed nor returned.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio

from sallyport.areas.directory.entry.descriptions import attribute_key, interpreted
from sallyport.areas.directory.entry.sid import OBJECT_SID, sid_text
from sallyport.areas.directory.reading import requests
from sallyport.areas.directory.reading.answers import Answers, Limits, Policy, RawEntry, Result
from sallyport.areas.directory.reading.server import Unreachable

if TYPE_CHECKING:
    from sallyport.areas.directory.reading.server import Stream
    from sallyport.base.fair import LoopTurns

SUCCESS: Final = 0
SIZE_LIMIT: Final = 4  # RFC 4511 section 4.1.9
OPERATIONS_ERROR: Final = 1
REFERRAL: Final = 10
ADMIN_LIMIT: Final = 11
INAPPROPRIATE_MATCHING: Final = 18
NO_SUCH_OBJECT: Final = 32
INVALID_DN: Final = 34
INAPPROPRIATE_AUTHENTICATION: Final = 48
INVALID_CREDENTIALS: Final = 49
INSUFFICIENT_ACCESS: Final = 50
BUSY: Final = 51
UNAVAILABLE: Final = 52
UNWILLING_TO_PERFORM: Final = 53
_NAMES: Final = {
    OPERATIONS_ERROR: "operations error",
    2: "protocol error",
    3: "time limit exceeded",
    SIZE_LIMIT: "size limit exceeded",
    7: "authentication method not supported",
    8: "stronger authentication required",
    REFERRAL: "referral",
    ADMIN_LIMIT: "administrative limit exceeded",
    12: "critical extension not available",
    13: "confidentiality required",
    INAPPROPRIATE_MATCHING: "inappropriate matching",
    NO_SUCH_OBJECT: "no such object",
    INVALID_DN: "invalid DN",
    INAPPROPRIATE_AUTHENTICATION: "inappropriate authentication",
    INVALID_CREDENTIALS: "invalid credentials",
    INSUFFICIENT_ACCESS: "insufficient access",
    BUSY: "busy",
    UNAVAILABLE: "unavailable",
    UNWILLING_TO_PERFORM: "unwilling to perform",
}
"""Names of result codes (RFC 4511 appendix A)."""
_CHUNK: Final = 65_536


class Refusal(Exception):
    """The error for a request that the directory has refused. code: the result code (RFC 4511). policy: the state of
    the account. It is known only if the answer has the password policy control."""

    def __init__(self, code: int, text: str, policy: Policy | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.policy = policy


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. values: the text values by attribute name in lower case."""

    dn: str
    values: Mapping[str, tuple[str, ...]]

    def of(self, attribute: str) -> tuple[str, ...]:
        """Return the values of an attribute. The case of the attribute's name does not matter. Return an empty tuple if
        the entry has no values, or if the account may not read them."""
        return self.values.get(attribute.lower(), ())


@dataclass(frozen=True, slots=True)
class Account:
    """The name and the password for a bind."""

    dn: str
    password: str


class Connection:
    """A bound connection, which serves one request at a time. has_policy: whether the bind response contained the
    password policy control."""

    def __init__(self, stream: Stream, limits: Limits, turns: LoopTurns) -> None:
        self._stream = stream
        self._socket = stream.socket if isinstance(stream, trio.SocketStream) else stream.transport_stream.socket
        self._answers = Answers(limits)
        self._turns = turns
        self._number = 0
        self.has_policy = False
        self.used_at = trio.current_time()

    @property
    def is_open(self) -> bool:
        """Return whether an idle connection can be used. The server closes it, or sends a notice, before it ends."""
        return self._socket.fileno() >= 0 and not self._socket.is_readable()

    async def search(self, base: str, pattern: str, attributes: Sequence[str]) -> list[Entry]:
        """Return at most two entries at or below the base that match a filter. Raises Refusal with the code SIZE_LIMIT
        if more than two entries match. Raises Unreachable, TooLarge."""
        found = await self._found(base, pattern, attributes, 2, whole_tree=True)
        return [_decoded(each) for each in found]

    async def read(self, dn: str, attributes: Sequence[str]) -> list[Entry]:
        """Return one entry, or an empty list if the account may not read the entry. Raises Refusal, Unreachable,
        TooLarge."""
        found = await self._found(dn, "(objectClass=*)", attributes, 1, whole_tree=False)
        return [_decoded(each) for each in found]

    async def pages(
        self, base: str, pattern: str, attributes: Sequence[str], size: int, *, timeout_s: float
    ) -> AsyncGenerator[list[RawEntry], None]:
        """Yield pages of the entries at or below the base that match a filter (RFC 2696). Raises Refusal, Unreachable,
        TooLarge.

        size: the number of entries in a page. OpenLDAP refuses pages that are larger than its setting `size.pr`; then
        the pages are smaller. timeout_s: the maximum time for one page. The caller may call `values` between two pages.
        """
        search, cookie, is_first = requests.search(base, pattern, attributes, whole_tree=True), b"", True
        while is_first or cookie:
            try:
                with trio.fail_after(timeout_s):
                    result = await self._ask(search, requests.page_control(size, cookie))
            except trio.TooSlowError:
                raise Unreachable("no answer in time") from None
            except Refusal as error:
                if error.code != ADMIN_LIMIT or size == 1 or not is_first:
                    raise
                size //= 2
            else:
                is_first, cookie = False, result.cookie
                yield self._answers.entries

    async def values(self, dn: str, attributes: Sequence[str], *, timeout_s: float) -> RawEntry | None:
        """Return one entry with undecoded values, or None if the account may not read the entry. Raises Refusal,
        Unreachable, TooLarge."""
        with trio.move_on_after(timeout_s):
            found = await self._found(dn, "(objectClass=*)", attributes, 1, whole_tree=False)
            return next(iter(found), None)
        raise Unreachable("no answer in time")

    async def _found(
        self, base: str, pattern: str, attributes: Sequence[str], limit: int, *, whole_tree: bool
    ) -> list[RawEntry]:
        try:
            await self._ask(requests.search(base, pattern, attributes, whole_tree=whole_tree, most=limit))
        except Refusal as error:
            if error.code not in (NO_SUCH_OBJECT, REFERRAL):
                raise
        self.used_at = trio.current_time()
        return self._answers.entries

    async def bind(self, account: Account | None, *, asks_policy: bool) -> None:
        """Bind (see the function `bind`). Raises Refusal, Unreachable, TooLarge."""
        operation = requests.simple_bind(account.dn, account.password) if account else requests.simple_bind("", "")
        result = await self._ask(operation, requests.policy_control() if asks_policy else b"")
        self.has_policy = result.has_control

    async def _ask(self, operation: bytes, control: bytes = b"") -> Result:
        """Send a request, and return its result when all its entries are there. Raises Refusal, Unreachable,
        TooLarge."""
        self._number += 1
        try:
            self._answers.request(self._number)
            await self._stream.send_all(requests.message(self._number, operation, control))
            while (result := self._answers.result) is None:
                await self._receive()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self.close()
            raise Unreachable("the server closed the connection") from None
        except ValueError as error:
            self.close()
            raise Unreachable(str(error)) from None
        except BaseException:
            self.close()
            raise
        if result.policy is not None:
            raise Refusal(INVALID_CREDENTIALS, f"{result.policy.value}. {_text(result)}", result.policy)
        if result.code != SUCCESS:
            raise Refusal(result.code, _text(result))
        return result

    async def _receive(self) -> None:
        """Read a part of the answer. It is decoded in a thread if it is long."""
        part = await self._stream.receive_some(_CHUNK)
        if not part:
            raise trio.BrokenResourceError
        await self._turns.take()
        if self._answers.is_short(part):
            self._answers.feed(part)
        else:
            await trio.to_thread.run_sync(self._answers.feed, part)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


async def bind(
    stream: Stream, account: Account | None, limits: Limits, turns: LoopTurns, *, asks_policy: bool = False
) -> Connection:
    """Bind once over a stream. The connection owns the stream, which is closed if the bind fails. Raises Refusal,
    Unreachable, TooLarge.

    account: the account for the bind, or None for an anonymous bind. limits: the limits of the server's answers. turns:
    it limits how many answers are read in one pass of the event loop. asks_policy: whether to send the password policy
    control.
    """
    connection = Connection(stream, limits, turns)
    try:
        await connection.bind(account, asks_policy=asks_policy)
    except BaseException:
        connection.close()
        raise
    return connection


def _text(result: Result) -> str:
    name = _NAMES.get(result.code, "refused")
    text = result.text.replace("\n", " ").strip()
    return f"{name} (LDAP code {result.code}){text and ': '}{text}"


def _decoded(raw: RawEntry) -> Entry:
    values = interpreted((attribute_key(name), octets) for name, octets in raw.values.items()).items()
    return Entry(raw.dn, {name: tuple([_value(name, each) for each in octets]) for name, octets in values})


def _value(name: str, octets: bytes) -> str:
    return sid_text(octets) if name == OBJECT_SID.lower() else octets.decode(errors="replace")
