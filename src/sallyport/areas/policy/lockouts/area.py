"""The entrance of lock-outs."""

from collections.abc import Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.policy.lockouts import operations as api
from sallyport.areas.policy.lockouts.service import Lockouts
from sallyport.metrics import LockoutMetrics
from sallyport.settings.settings import Settings
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class LockoutsArea(Area):
    """Users and stations that are refused after too many failures."""

    erased_rows = (Rows("lockouts", "lock-outs"),)

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self.service = Lockouts(
            parts.store,
            LockoutMetrics(parts.registry),
            parts.notices,
            parts.vault.derived("guesses"),
            limit=settings.lockout_failures,
            minutes=settings.lockout_minutes,
            clock=parts.clock,
        )
        self.node_tasks = (self.service.run,)

    def apply(self, settings: Settings) -> None:
        """Lock out after the number of failures, and for the time, of the settings."""
        self.service.use(limit=settings.lockout_failures, minutes=settings.lockout_minutes)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of lock-outs."""
        return [api.operations(self.service, gate)]

    async def prepare(self) -> None:
        """Load the locks."""
        await self.service.load()

    async def restored(self) -> None:
        """Load the locks of the restored store."""
        await self.service.load()
