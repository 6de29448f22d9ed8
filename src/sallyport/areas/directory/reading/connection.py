"""One LDAP conversation over an open stream: a bind, then searches.

libldap connects to a Unix socket in a file system directory of mode 0700. This directory is removed as soon as libldap
has connected, before any octet is sent to the server. So if the process is killed during a slow answer, no file is
left.

Two tasks relay the octets between the Unix socket and the server. So no call of libldap blocks, because libldap
connects at once and never waits for input. When the connection is closed, all tasks that wait for an answer get an
error. Referrals are neither followed nor returned.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.util import find_spec
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import trio

from sallyport import __version__
from sallyport.areas.directory.entry.descriptions import attribute_key, interpreted
from sallyport.areas.directory.reading.answers import Answers, Limits, RawEntry, TooLarge
from sallyport.areas.directory.reading.server import Unreachable
from sallyport.base.fair import LoopTurns

if TYPE_CHECKING:
    from bonsai._bonsai import ldapsearchiter
    from bonsai.trio import TrioLDAPConnection

WITHOUT_LDAP: Final = (
    "Sallyport was installed without LDAP: pip install "
    f"'./sallyport_radius-{__version__}-py3-none-any.whl[ldap]', with the path of the wheel; in a clone: "
    ".venv/bin/pip install --require-hashes -r requirements-ldap.lock; then restart the service"
)
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
_CHUNK: Final = 65_536
_MAX_TEXT: Final = 300
_ANY: Final = re.compile("")
_FAILED: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


def has_ldap() -> bool:
    """Return whether the extra `ldap` is installed."""
    return find_spec("bonsai") is not None


class Policy(Enum):
    """The state of an account, as the password policy control reports it (draft-behera-ldap-password-policy)."""

    LOCKED = "account locked"
    EXPIRED = "password expired"
    MUST_CHANGE = "password must be changed"


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
    """A bound connection. has_policy: whether the bind response contained the password policy control."""

    def __init__(
        self,
        ldap: TrioLDAPConnection,
        relay: trio.CancelScope,
        answers: Answers,
        *,
        has_policy: bool,
    ) -> None:
        self._ldap = ldap
        self._relay = relay
        self._answers = answers
        self.has_policy = has_policy
        self.used_at = trio.current_time()

    @property
    def is_open(self) -> bool:
        return not self._relay.cancel_called

    async def search(self, base: str, pattern: str, attributes: Sequence[str]) -> list[Entry]:
        """Return at most two entries at or below the base that match a filter. Raises Refusal with the code SIZE_LIMIT
        if more than two entries match. Raises Unreachable, TooLarge."""
        return await self._search(base, pattern, attributes, 2, whole_tree=True)

    async def read(self, dn: str, attributes: Sequence[str]) -> list[Entry]:
        """Return one entry, or an empty list if the account may not read the entry. Raises Refusal, Unreachable,
        TooLarge."""
        return await self._search(dn, "(objectClass=*)", attributes, 1, whole_tree=False)

    async def pages(
        self, base: str, pattern: str, attributes: Sequence[str], size: int, *, timeout_s: float
    ) -> AsyncGenerator[list[RawEntry], None]:
        """Yield pages of the entries at or below the base that match a filter (RFC 2696). Raises Refusal, Unreachable,
        TooLarge.

        size: the number of entries in a page. If the server does not accept pages of this size, the pages are smaller.
        timeout_s: the maximum time for one page. The caller may call `values` between two pages.
        """
        import bonsai

        try:
            page = await self._first_page(base, pattern, attributes, size, timeout_s)
            while True:
                yield self._answers.entries
                following = page.acquire_next_page()
                if following is None:
                    break
                with trio.fail_after(timeout_s):
                    page = await self._ldap.get_result(following)
        except (bonsai.LDAPError, SystemError, ValueError) as error:
            raise _error_of(error, self._answers) from None
        except trio.TooSlowError:
            raise Unreachable("no answer in time") from None

    async def _first_page(
        self, base: str, pattern: str, attributes: Sequence[str], size: int, timeout_s: float
    ) -> ldapsearchiter:
        """Begin a paged search. OpenLDAP refuses pages that are larger than its setting `size.pr`. So the page size
        is halved until the server accepts it."""
        import bonsai

        scope = bonsai.LDAPSearchScope.SUBTREE
        while True:
            try:
                with trio.fail_after(timeout_s):
                    return await self._ldap.paged_search(base, scope, pattern, [*attributes], page_size=size)
            except bonsai.LDAPError as error:
                if error.code != ADMIN_LIMIT or size == 1:
                    raise
                size //= 2

    async def values(self, dn: str, attributes: Sequence[str], *, timeout_s: float) -> RawEntry | None:
        """Return one entry with undecoded values, or None if the account may not read the entry. Raises Refusal,
        Unreachable, TooLarge."""
        with trio.move_on_after(timeout_s):
            found = await self._found(dn, "(objectClass=*)", attributes, 1, whole_tree=False)
            return next(iter(found), None)
        raise Unreachable("no answer in time")

    async def _search(
        self, base: str, pattern: str, attributes: Sequence[str], limit: int, *, whole_tree: bool
    ) -> list[Entry]:
        found = await self._found(base, pattern, attributes, limit, whole_tree=whole_tree)
        return [_decoded(each) for each in found]

    async def _found(
        self, base: str, pattern: str, attributes: Sequence[str], limit: int, *, whole_tree: bool
    ) -> list[RawEntry]:
        import bonsai

        scope = bonsai.LDAPSearchScope.SUBTREE if whole_tree else bonsai.LDAPSearchScope.BASE
        try:
            await self._ldap.search(base, scope, pattern, list(attributes), sizelimit=limit)
        except (bonsai.LDAPError, SystemError, ValueError) as error:
            raise _error_of(error, self._answers) from None
        self.used_at = trio.current_time()
        return self._answers.entries

    def close(self) -> None:
        """Unbind, and close the connection."""
        self._ldap.close()
        self._relay.cancel()


async def bind(
    stream: trio.abc.Stream,
    nursery: trio.Nursery,
    account: Account | None,
    limits: Limits,
    turns: LoopTurns,
    *,
    asks_policy: bool = False,
) -> Connection:
    """Bind once over a stream. The connection owns the stream, which is closed if the bind fails. Raises Refusal,
    Unreachable, TooLarge.

    nursery: it runs the tasks that relay octets until the connection is closed. account: the account for the bind, or
    None for an anonymous bind. limits: the limits of the server's answers. turns: it limits how many answers are read
    in one pass of the event loop. asks_policy: whether to send the password policy control.
    """
    relay, answers = trio.CancelScope(), Answers(limits)
    try:
        ldap, control = await _bind(stream, nursery, account, relay, answers, turns, asks_policy=asks_policy)
    except BaseException as error:
        relay.cancel()
        await trio.aclose_forcefully(stream)
        if isinstance(error, Exception):
            raise _error_of(error, answers) from None
        raise
    return Connection(ldap, relay, answers, has_policy=control is not None)


async def _bind(
    stream: trio.abc.Stream,
    nursery: trio.Nursery,
    account: Account | None,
    relay: trio.CancelScope,
    answers: Answers,
    turns: LoopTurns,
    *,
    asks_policy: bool,
) -> tuple[TrioLDAPConnection, object]:
    """Return the bound connection and the password policy control. Raises the errors of bonsai. Raises OSError if a
    local socket cannot be created."""
    import bonsai

    # Distinguished names come from the directory and go back to it unchanged. The check in the bindings is disabled:
    # it makes a whole search fail if a legal name contains a # (RFC 4514 section 2.4), and splits names at a semicolon.
    bonsai.LDAPDN._dnregex = _ANY
    with ExitStack() as until_connected, trio.CancelScope() as attempt:
        directory = mkdtemp(prefix="sallyport-")
        until_connected.callback(os.rmdir, directory)
        path = f"{directory}/ldap"
        client = bonsai.LDAPClient(f"ldapi://{quote(path, safe='')}")
        client.set_async_connection_class(_connection_class())
        client.set_auto_page_acquire(False)  # pages are requested one by one
        client.set_password_policy(asks_policy)
        if account is not None:
            client.set_credentials("SIMPLE", account.dn, account.password)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        until_connected.callback(os.unlink, path)
        listener.listen(1)
        nursery.start_soon(_relay_octets, listener, stream, relay, answers, turns, until_connected.close)
        # A thread of the bindings uses a socket of this attempt until libldap has connected, which happens at once. If
        # the attempt were cancelled earlier, that socket would be closed.
        attempt.shield = True
        until_connected.callback(setattr, attempt, "shield", False)
        opened = await client.connect(is_async=True)
    return opened if asks_policy else (opened, None)


@cache
def _connection_class() -> type[TrioLDAPConnection]:
    """Return a subclass of bonsai's connection. While a message is incomplete, the subclass does not block the thread.
    If it did, the missing octets would never arrive, because `_relay_octets` delivers them in the same thread."""
    from bonsai.trio import TrioLDAPConnection

    class Conversation(TrioLDAPConnection):  # type: ignore[misc]  # bonsai is an extra
        async def _poll(self, msg_id: int, timeout: float | None = None) -> object:
            while True:
                await trio.lowlevel.wait_writable(self)
                await trio.lowlevel.wait_readable(self)
                os.set_blocking(self.fileno(), False)  # each time, because libldap may open a new socket
                result: object = super(TrioLDAPConnection, self).get_result(msg_id)
                if result is not None:
                    return result

    return Conversation


async def _relay_octets(
    listener: socket.socket,
    stream: trio.abc.Stream,
    relay: trio.CancelScope,
    answers: Answers,
    turns: LoopTurns,
    connected: Callable[[], None],
) -> None:
    """Accept libldap's connection, and relay octets in both directions until one side ends.

    connected: a function that is called when the connection has been accepted, and again at the end. The connection may
    not be accepted, for example because no file descriptors are left. Then the stream is closed, and other connections
    are not affected.
    """
    try:
        with relay, suppress(OSError):
            with trio.socket.from_stdlib_socket(listener) as local:
                near, _ = await local.accept()
            async with trio.SocketStream(near) as inner, trio.open_nursery() as nursery:
                connected()
                nursery.start_soon(_relay_requests, inner, stream, relay, answers)
                nursery.start_soon(_relay_answers, stream, inner, relay, answers, turns)
    finally:
        relay.cancel()
        connected()
        with suppress(*_FAILED):
            await trio.aclose_forcefully(stream)


async def _relay_requests(
    local: trio.abc.Stream, server: trio.abc.Stream, relay: trio.CancelScope, answers: Answers
) -> None:
    with suppress(*_FAILED):
        while part := await local.receive_some(_CHUNK):
            answers.request(part)
            await server.send_all(part)
    relay.cancel()


async def _relay_answers(
    server: trio.abc.Stream, local: trio.abc.Stream, relay: trio.CancelScope, answers: Answers, turns: LoopTurns
) -> None:
    """Relay the server's messages to libldap. If a message exceeds a limit, close the connection, because libldap
    keeps answers of any size in memory."""
    with suppress(*_FAILED, TooLarge, ValueError):
        while part := await server.receive_some(_CHUNK):
            await turns.take()
            short = answers.is_short(part)
            if ready := answers.feed(part) if short else await trio.to_thread.run_sync(answers.feed, part):
                await local.send_all(ready)
    relay.cancel()


def _decoded(raw: RawEntry) -> Entry:
    values = interpreted((attribute_key(name), octets) for name, octets in raw.values.items()).items()
    return Entry(raw.dn, {name: tuple(each.decode(errors="replace") for each in octets) for name, octets in values})


def _error_of(error: Exception, answers: Answers) -> Refusal | Unreachable | TooLarge:
    """Return the exception that replaces an error of bonsai or of a stream."""
    import bonsai

    if answers.exceeded is not None:
        return answers.exceeded
    if not isinstance(error, bonsai.LDAPError):
        return Unreachable(f"the LDAP connection failed: {type(error).__name__}")
    if isinstance(error, (bonsai.ConnectionError, bonsai.ClosedConnection, bonsai.TimeoutError)):
        return Unreachable("the server closed the connection")
    policies = {
        bonsai.AccountLocked: Policy.LOCKED,
        bonsai.PasswordExpired: Policy.EXPIRED,
        bonsai.ChangeAfterReset: Policy.MUST_CHANGE,
    }
    policy = next((policy for kind, policy in policies.items() if isinstance(error, kind)), None)
    code = error.code if policy is None else INVALID_CREDENTIALS
    return Refusal(code, str(error)[:_MAX_TEXT].replace("\n", " "), policy)
