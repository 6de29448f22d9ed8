"""The entrance of recorded logins: their list, their retention, and their export."""

from collections.abc import Mapping, Sequence

from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.events import operations as api
from sallyport.areas.events.outlets.log import LoginLog
from sallyport.areas.events.outlets.service import Outlets
from sallyport.areas.events.outlets.transport import targets_of
from sallyport.areas.events.retention import Retention
from sallyport.areas.events.service import Events
from sallyport.base import log
from sallyport.metrics import LoginMetrics, OutletMetrics
from sallyport.settings.settings import Settings
from sallyport.shell.command import Command
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class EventsArea(Area):
    """Recorded logins, and where they are sent."""

    def __init__(self, parts: Parts, domains: Domains, metrics: LoginMetrics) -> None:
        self._domains = domains
        settings, store = parts.settings, parts.store
        self.service = Events(store, parts.cluster, parts.clock)
        self.retention = Retention(
            parts.leader_store,
            metrics,
            days=settings.event_days,
            limit=settings.event_limit_mib << 20,
            clock=parts.settled,
        )
        self.login_log = LoginLog(store, self._domain_name, lambda: parts.cluster.id)
        self.outlets = Outlets(
            parts.leader_store,
            targets_of(settings),
            parts.http.egress,
            OutletMetrics(parts.registry),
            changes=settings.audit_outlets,
            has_gaps=store.is_shared,
            domain=self._domain_name,
            pseudonyms=log.pseudonyms,
        )
        self.leader_tasks = (parts.settled.run, self.retention.run, self.outlets.run)

    def apply(self, settings: Settings) -> None:
        """Use the outlets and the retention of the settings. Raises ConfigError if an outlet is malformed."""
        self.outlets.use(targets_of(settings), changes=settings.audit_outlets)
        self.retention.days, self.retention.limit = settings.event_days, settings.event_limit_mib << 20
        self.login_log.is_on = settings.log_logins

    def _domain_name(self, domain_id: int) -> str:
        domain = self._domains.table.by_id.get(domain_id)
        return "" if domain is None else domain.name

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operation that lists recorded logins."""
        return [api.operations(self.service, self._domains, gate)]

    def commands(self) -> Mapping[str, Command]:
        """Return the command that exports recorded logins."""
        return api.local_operations(self.service, self._domains.anywhere)
