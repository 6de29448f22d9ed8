"""Select a server of the directory, and pool the service account's connections.

After a failure, a server is not asked for a while. It is asked earlier only if all other servers fail too. Connections
of the service account stay open for later searches.

A firewall may forget a connection, and drops its packets without a notice. So if a search on a pooled connection is not
answered in time, the search is repeated on a new connection. A bind with a user's password is never repeated, because
the directory may count it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

import structlog
import trio

from sallyport.areas.directory.reading.answers import LOGIN
from sallyport.areas.directory.reading.connection import (
    BUSY,
    INAPPROPRIATE_AUTHENTICATION,
    INVALID_CREDENTIALS,
    UNAVAILABLE,
    Account,
    Connection,
    Entry,
    Refusal,
    bind,
)
from sallyport.areas.directory.reading.server import Server, Unreachable
from sallyport.areas.login.first.checker import Tell
from sallyport.areas.login.first.ldap.account import coded
from sallyport.areas.login.login import Reason
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.tls import LazyContext

REST_S: Final = 30.0
WRONG_ACCOUNT_REST_S: Final = 300.0
"""Pause after a refused bind of the service account, in seconds. Without the pause, the directory could lock the
account permanently."""
IDLE_S: Final = 30.0
"""Maximum idle time of a pooled connection, in seconds. Firewalls and load balancers forget idle connections after 50
seconds or more."""
MAX_IDLE: Final = 4
AT_ONCE: Final = 16
"""Maximum number of logins that ask the directory at the same time. Further logins wait until their time limit ends."""

log = structlog.get_logger()


class ServiceRefused(Exception):
    """The directory has refused the service account."""


class Directory:
    """The directory servers of one domain. service: the account that searches; if it is None, the search is anonymous.
    `run` must be running while logins use the directory."""

    def __init__(self, servers: Sequence[Server], service: Account | None, trust: LazyContext, egress: Egress) -> None:
        self._servers = tuple(servers)
        self._service = service
        self._trust = trust
        self._egress = egress
        self._rests_until = dict.fromkeys(self._servers, 0.0)
        self._idle: dict[Server, list[Connection]] = {server: [] for server in self._servers}
        self._refused: tuple[float, str] = (0.0, "")
        self._room = trio.CapacityLimiter(AT_ONCE)
        self._running = trio.Event()

    async def run(self) -> None:
        """Keep the connections until cancelled, and close idle connections."""
        self._running.set()
        try:
            while True:
                await trio.sleep(IDLE_S / 2)
                for server, idle in self._idle.items():
                    self._idle[server] = [connection for connection in idle if _is_fresh(connection)]
                    for connection in set(idle).difference(self._idle[server]):
                        connection.close()
        finally:
            for connection in chain.from_iterable(self._idle.values()):
                connection.close()

    # --- the service account ----------------------------------------------------------------------------------

    async def search(
        self, base: str, pattern: str, attributes: Sequence[str], tell: Tell
    ) -> tuple[Server, list[Entry]]:
        """Search as the service account. Return the server that answered, and the entries that `Connection.search`
        returns.

        Raises Refusal, ServiceRefused. Raises Unreachable if no server answers.
        """
        await self._running.wait()
        servers = self._in_order()
        async with self._room:
            for left in range(len(servers), 0, -1):
                server = servers[-left]
                found = await self._search_pooled(server, base, pattern, attributes, tell, _share(left) / 2)
                if found is not None:
                    return server, found
                with trio.move_on_after(_share(left)):
                    try:
                        fresh = await self._bind_service(server, tell)
                        return server, await self._search_on(fresh, server, base, pattern, attributes)
                    except Unreachable as error:
                        self._rest(server, str(error), tell)
                        continue
                self._rest(server, "no answer in time", tell)
        raise Unreachable("no server of the directory answers")

    async def _search_pooled(
        self, server: Server, base: str, pattern: str, attributes: Sequence[str], tell: Tell, limit_s: float
    ) -> list[Entry] | None:
        """Search on a pooled connection. Return None if there is none, or if it is closed or gives no answer. Raises
        Refusal."""
        kept = self._take(server)
        if kept is None:
            return None
        with trio.move_on_after(limit_s):
            try:
                return await self._search_on(kept, server, base, pattern, attributes)
            except Unreachable:
                tell(f"{server}: the pooled connection is closed")
                return None
        tell(f"{server}: no answer on the pooled connection; the search is repeated on a new connection")
        while self._idle[server]:  # a firewall that has forgotten one connection has forgotten all
            self._idle[server].pop().close()
        return None

    async def _search_on(
        self, connection: Connection, server: Server, base: str, pattern: str, attributes: Sequence[str]
    ) -> list[Entry]:
        try:
            found = await connection.search(base, pattern, attributes)
        except Refusal as error:
            connection.close()
            if error.code in (BUSY, UNAVAILABLE):
                raise Unreachable(f"{server}: {error}") from None
            raise
        except BaseException:
            connection.close()
            raise
        if len(self._idle[server]) < MAX_IDLE:
            self._idle[server].append(connection)
        else:
            connection.close()
        return found

    def _take(self, server: Server) -> Connection | None:
        idle = self._idle[server]
        while idle:
            connection = idle.pop()
            if _is_fresh(connection):
                return connection
            connection.close()
        return None

    async def _bind_service(self, server: Server, tell: Tell) -> Connection:
        until, why = self._refused
        if trio.current_time() < until:
            raise ServiceRefused(f"the service account is not tried again for some minutes after this refusal: {why}")
        stream = await server.connect(await self._trust.get(), self._egress, tell)
        try:
            connection = await bind(stream, self._service, LOGIN, self._egress.turns)
        except Refusal as error:
            if error.code not in (INVALID_CREDENTIALS, INAPPROPRIATE_AUTHENTICATION):
                raise Unreachable(f"{server}: {error}") from None
            self._refused = (trio.current_time() + WRONG_ACCOUNT_REST_S, str(error))
            log.warning("directory_refuses_service_account", server=str(server), error=str(error))
            who = "an anonymous bind" if self._service is None else f"the service account {self._service.dn}"
            raise ServiceRefused(f"{server} refuses {who}: {error}; {_remedy(error)}") from None
        tell(f"{server}: bound as {self._service.dn if self._service else 'nobody (anonymous)'}")
        return connection

    # --- users ------------------------------------------------------------------------------------------------

    async def bind(self, server: Server, account: Account, tell: Tell) -> Connection:
        """Bind once with a user's account, and return the connection. The caller must close the connection. If `server`
        cannot be reached, the bind goes to another server.

        Raises Refusal if the server refuses the bind. Raises Unreachable if no server answers.
        """
        for each in (server, *(other for other in self._in_order() if other != server)):
            async with self._room:
                try:
                    stream = await each.connect(await self._trust.get(), self._egress, tell)
                except Unreachable as error:
                    self._rest(each, str(error), tell)
                    continue
                return await bind(stream, account, LOGIN, self._egress.turns, asks_policy=True)
        raise Unreachable("no server of the directory answers")

    # --- health -----------------------------------------------------------------------------------------------

    def _in_order(self) -> list[Server]:
        """Return all servers in the configured order, except that servers with a recent failure come last."""
        now = trio.current_time()
        return sorted(self._servers, key=lambda server: self._rests_until[server] > now)

    def _rest(self, server: Server, why: str, tell: Tell) -> None:
        tell(why)
        if self._rests_until[server] <= trio.current_time():
            log.warning("directory_server_unreachable", server=str(server), error=why)
        self._rests_until[server] = trio.current_time() + REST_S


def _share(left: int) -> float:
    """Return the time for one of the remaining servers, in seconds. One share is reserved for the bind. left: number of
    servers that were not asked yet."""
    return max((trio.current_effective_deadline() - trio.current_time()) / (left + 1), 0.0)


def _remedy(refusal: Refusal) -> str:
    """Return a hint on how to correct a refused bind of the service account."""
    reason = coded(refusal)
    if reason in (Reason.NONE, Reason.WRONG_PASSWORD, Reason.UNKNOWN_USER):
        return "check bindDN and bindPassword; the user's password is not the cause"
    return f"the service account cannot log in: {reason}; correct it in the directory, or set another bindDN"


def _is_fresh(connection: Connection) -> bool:
    return connection.is_open and trio.current_time() - connection.used_at < IDLE_S
