"""The entrance of user sessions, from the accounting of network devices."""

from collections.abc import Mapping, Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.sessions import operations as api
from sallyport.areas.sessions.service import Sessions
from sallyport.base.wire import JSON
from sallyport.metrics import SessionMetrics
from sallyport.shell.command import Arguments, Command, LocalOperations
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class DomainOf(Arguments):
    """Arguments of session.domain. session: the id of a session."""

    session: int


class SessionsArea(Area):
    """User sessions, live and past."""

    erased_rows = (
        Rows("sessions", "sessions"),
        Rows("device_restarts", key="device_id", has_index=False),
        Rows("session_limits", key="domain_id, user_key"),
    )

    def __init__(self, parts: Parts) -> None:
        self._value_name = parts.dictionary.value_name
        self.service = Sessions(parts.store, SessionMetrics(parts.registry), parts.clock)
        self.node_tasks = (self.service.run,)
        self.leader_tasks = (self.service.end,)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of sessions."""
        return [api.operations(self.service, self._value_name, gate)]

    def commands(self) -> Mapping[str, Command]:
        """Return the command that finds the domain of a session. The command line has only the id of the session, but
        operations need the domain."""

        local = LocalOperations()

        @local("session.domain")
        async def domain(wanted: DomainOf) -> JSON:
            return await self.service.domain_of(wanted.session)

        return local
