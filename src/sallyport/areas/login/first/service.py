"""The first factors of all domains. Each domain has one running checker with its stored configuration."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog
import trio

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.first import repo
from sallyport.areas.login.first.checker import AtOnce, Checker, Tell, silent
from sallyport.areas.login.first.repo import FactorRow
from sallyport.areas.login.login import FirstFactorResult, Login, Reason
from sallyport.base.errors import SecretError
from sallyport.base.trace import following
from sallyport.store.snapshot import Configuration

RESTART_S = 1.0
RETIRE_S = 90.0
"""Time in seconds for which a replaced checker continues to run, so that pending logins can finish."""

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Ready:
    """A domain's checker and its configuration. checker: None if the configuration cannot be read. at_once: the same
    checker if it can check logins without a task, otherwise None."""

    row: FactorRow
    checker: Checker | None
    at_once: AtOnce | None
    scope: trio.CancelScope


class FirstFactors:
    """The first factors of all domains. `run` must be running while logins ask another server.

    make: a function that creates the checker for a stored configuration. It raises SecretError, ValueError or KeyError
    if the configuration cannot be read.
    """

    def __init__(self, configuration: Configuration, make: Callable[[FactorRow], Checker]) -> None:
        self._make = make
        self.rows = configuration.hold(repo.load, dict[repo.Key, FactorRow]())
        self._ready: dict[int, _Ready] = {}
        self._nursery: trio.Nursery
        self._is_running = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the checkers' background tasks until cancelled."""
        async with trio.open_nursery() as self._nursery:
            self._is_running = True
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._is_running = False
                self._ready.clear()

    async def while_running(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask`, which may use the checkers. If `run` is not running, because a command runs
        without the service, it runs until `ask` has ended."""
        if self._is_running:
            return await ask()
        async with trio.open_nursery() as nursery:
            await nursery.start(self.run)
            result = await ask()
            nursery.cancel_scope.cancel()
        return result

    async def check(
        self, login: Login, domain: Domain, takes_code: Callable[[], bool], tell: Tell = silent
    ) -> FirstFactorResult:
        """Check a login at a domain whose first factor asks another server. Raises PacketError if the password field is
        malformed."""
        checker = self.checker(domain, tell)
        if isinstance(checker, Reason):
            return FirstFactorResult(checker)
        return await checker.check(login, takes_code, tell)

    def checker(self, domain: Domain, tell: Tell = silent) -> Checker | Reason:
        """Return the checker of a domain, or the reason why there is none."""
        row = self.rows.value.get((domain.id, domain.factor))
        if row is None:
            tell(f"the first factor {domain.first_factor} has no configuration; set one")
            return Reason.FIRST_FACTOR_UNAVAILABLE
        checker = self._at_work(row).checker
        if checker is None:
            tell("the stored configuration of the first factor cannot be read")
            return Reason.FIRST_FACTOR_UNREADABLE
        return checker

    def stamp(self, domain: Domain) -> str:
        """Return a value that changes with each change of a domain's first factor."""
        row = self.rows.value.get((domain.id, domain.factor))
        return "" if row is None else str(row.changed_at)

    def begin(
        self, login: Login, domain: Domain, takes_code: Callable[[], bool], done: Callable[[FirstFactorResult], None]
    ) -> bool:
        """Start to check a login without a task, see `AtOnce.begin`. Return False if the caller must await `check`."""
        row = self.rows.value.get((domain.id, domain.factor))
        at_once = None if row is None else self._at_work(row).at_once
        return at_once is not None and at_once.begin(login, takes_code, done)

    def _at_work(self, row: FactorRow) -> _Ready:
        ready = self._ready.get(row.domain_id)
        if ready is not None and (ready.row is row or ready.row == row):
            return ready
        self.retire(row.domain_id, row)
        checker = self._open(row)
        at_once = checker if isinstance(checker, AtOnce) else None
        ready = self._ready[row.domain_id] = _Ready(row, checker, at_once, trio.CancelScope())
        if ready.checker is not None:
            with following(None):  # the task outlives the login that starts it
                self._nursery.start_soon(self._carry, ready, ready.checker)
        return ready

    def retire(self, domain_id: int, row: FactorRow | None) -> None:
        """Stop a domain's checker after RETIRE_S, unless its configuration is still `row`. A checker that is never
        stopped would probe its servers forever. row: the configuration that is stored now, or None if there is none."""
        ready = self._ready.get(domain_id)
        if ready is not None and ready.row != row:
            del self._ready[domain_id]
            self._nursery.start_soon(_retire, ready)

    async def _carry(self, ready: _Ready, checker: Checker) -> None:
        """Run a checker's background tasks. If they fail, log the error and forget the checker, so the next login
        starts a new one."""
        with ready.scope:
            try:
                await checker.run()
            except Exception as error:
                log.exception("first_factor_work_ended", kind=checker.name, error=str(error))
                await trio.sleep(RESTART_S)
                if self._ready.get(ready.row.domain_id) is ready:
                    del self._ready[ready.row.domain_id]

    def _open(self, row: FactorRow) -> Checker | None:
        try:
            return self._make(row)
        except (SecretError, ValueError, KeyError) as error:
            log.error(  # noqa: TRY400  a traceback may show what was configured
                "first_factor_unreadable",
                domain=row.domain_id,
                kind=row.kind,
                error=type(error).__name__,
            )
            return None


async def _retire(ready: _Ready) -> None:
    await trio.sleep(RETIRE_S)
    ready.scope.cancel()
