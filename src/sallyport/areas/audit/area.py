"""The entrance of the audit trail."""

from collections.abc import Mapping, Sequence

from sallyport.areas.audit import operations as api
from sallyport.areas.audit.service import Audit, Retention
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.settings.settings import Settings
from sallyport.shell.command import Command, Tenants
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class AuditArea(Area):
    """The audit trail."""

    def __init__(self, parts: Parts, tenants: Tenants, domains: Domains) -> None:
        self._tenants, self._domains = tenants, domains
        self.service = Audit(parts.store)
        self.retention = Retention(parts.leader_store, days=parts.settings.audit_days, clock=parts.settled)
        self.leader_tasks = (self.retention.run,)

    def apply(self, settings: Settings) -> None:
        """Keep entries for the time of the settings."""
        self.retention.days = settings.audit_days

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operation that lists the audit trail."""
        return [api.operations(self.service, gate)]

    def commands(self) -> Mapping[str, Command]:
        """Return the command that lists the audit trail of the installation."""
        return api.local_operations(self.service, self._tenants, self._domains.id_of)
