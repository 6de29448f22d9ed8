"""Which first factor a domain has: set, shown without its secrets; held ready for the login path."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
import trio
from pydantic import ValidationError

from sallyport.base.clock import Clock
from sallyport.base.errors import FieldError, Invalid, SecretError
from sallyport.base.validation import refusal
from sallyport.domains.domain import Domain, FirstFactor
from sallyport.domains.repo import set_first_factor
from sallyport.login.first import repo
from sallyport.login.first.ldap.checker import Ldap
from sallyport.login.first.model import AtOnce, Checker, Fields, Host, Tell, silent
from sallyport.login.first.repo import FactorRow
from sallyport.login.first.upstream.checker import Upstream
from sallyport.login.login import Login, Reason
from sallyport.outgoing.fields import revealed, shown
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault

KINDS: Final[Mapping[FirstFactor, type[Checker]]] = {FirstFactor.LDAP: Ldap, FirstFactor.RADIUS: Upstream}
"""The first factors that ask another server."""
RESTART_S = 1.0
RETIRE_S = 90.0
"""So long a checker that was replaced goes on with the logins that began with it."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Ready:
    """A checker at work. checker: None where its configuration cannot be read. at_once: the same where it can do so."""

    row: FactorRow
    checker: Checker | None
    at_once: AtOnce | None
    scope: trio.CancelScope


class FirstFactors:
    """The first factors of all domains. `run` must run for those to work that ask somebody else.

    kinds: the checkers' classes. host: what the service lends the checker of a domain.
    """

    def __init__(
        self,
        configuration: Configuration,
        vault: Vault,
        kinds: Mapping[FirstFactor, type[Checker]],
        host: Callable[[int], Host],
        clock: Clock,
    ) -> None:
        self._configuration = configuration
        self._vault = vault
        self._kinds = kinds
        self._host = host
        self._clock = clock
        self._rows = configuration.hold(repo.load, dict[repo.Key, FactorRow]())
        self._ready: dict[int, _Ready] = {}
        self._nursery: trio.Nursery
        self.is_running = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry the checkers' background work, until cancelled."""
        async with trio.open_nursery() as self._nursery:
            self.is_running = True
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self.is_running = False
                self._ready.clear()

    # --- for the login path -----------------------------------------------------------------------------------

    async def check(self, login: Login, domain: Domain, takes_code: Callable[[], bool], tell: Tell = silent) -> Reason:
        """Ask a domain's first factor that is neither `local` nor `none`. PacketError: the password is malformed."""
        checker = self.checker(domain, tell)
        return checker if isinstance(checker, Reason) else await checker.check(login, takes_code, tell)

    def checker(self, domain: Domain, tell: Tell = silent) -> Checker | Reason:
        """Who checks a domain's logins, or why nobody does."""
        row = self._rows.value.get((domain.id, domain.first_factor.value))
        if row is None:
            tell(f"{domain.first_factor} is not configured")
            return Reason.FIRST_FACTOR_UNAVAILABLE
        checker = self._at_work(row).checker
        if checker is None:
            tell("its configuration cannot be read")
            return Reason.FIRST_FACTOR_UNREADABLE
        return checker

    def egress_advice(self, domain: Domain) -> list[str]:
        """Return how to allow the hosts that the domain's tenant was denied lately. For the installation only."""
        return self._host(domain.id).egress.advice()

    def stamp(self, domain: Domain) -> str:
        """Another after each change of how a domain's first factor is configured."""
        row = self._rows.value.get((domain.id, domain.first_factor.value))
        return "" if row is None else str(row.changed_at)

    def begin(
        self, login: Login, domain: Domain, takes_code: Callable[[], bool], done: Callable[[Reason], None]
    ) -> bool:
        """Ask it where that needs no task; `done` hears what `check` would have returned. False: call `check`."""
        row = self._rows.value.get((domain.id, domain.first_factor.value))
        at_once = None if row is None else self._at_work(row).at_once
        return at_once is not None and at_once.begin(login, takes_code, done)

    def _at_work(self, row: FactorRow) -> _Ready:
        ready = self._ready.get(row.domain_id)
        if ready is not None and (ready.row is row or ready.row == row):
            return ready
        self._let_go(row.domain_id, row)
        checker = self._made(row)
        at_once = checker if isinstance(checker, AtOnce) else None
        ready = self._ready[row.domain_id] = _Ready(row, checker, at_once, trio.CancelScope())
        if ready.checker is not None:
            self._nursery.start_soon(self._carry, ready, ready.checker)
        return ready

    def _let_go(self, domain_id: int, row: FactorRow | None) -> None:
        """What is at work for a domain ends soon, unless it is what is configured now: servers that nobody logs in
        with any more are not probed for ever."""
        ready = self._ready.get(domain_id)
        if ready is not None and ready.row != row:
            del self._ready[domain_id]
            self._nursery.start_soon(_retire, ready)

    async def _carry(self, ready: _Ready, checker: Checker) -> None:
        """A checker's background work. Where that fails, it is told, and the next login finds a new checker."""
        with ready.scope:
            try:
                await checker.run()
            except Exception as error:
                log.exception("the background work of a first factor has ended", kind=checker.name, error=str(error))
                await trio.sleep(RESTART_S)
                if self._ready.get(ready.row.domain_id) is ready:
                    del self._ready[ready.row.domain_id]

    def _made(self, row: FactorRow) -> Checker | None:
        try:
            kind, fields = self._open(row)
            return kind(fields, self._host(row.domain_id))
        except (SecretError, ValueError, KeyError) as error:
            log.error(  # noqa: TRY400  a traceback may show what was configured
                "the configuration of a first factor cannot be read",
                domain=row.domain_id,
                kind=row.kind,
                error=type(error).__name__,
            )
            return None

    def _open(self, row: FactorRow) -> tuple[type[Checker], Fields]:
        kind = self._kinds[FirstFactor(row.kind)]
        clear = self._vault.open(row.fields, row.identity)
        return kind, kind.fields.model_validate(json.loads(clear))

    # --- for admins -------------------------------------------------------------------------------------------

    async def set(self, domain: Domain, factor: FirstFactor, given: Mapping[str, Mapping[str, object]]) -> None:
        """Choose a domain's first factor; it holds for the next login.

        given: the fields of some kinds by name; a kind that was configured before may be left out. Invalid, naming the
        fields.
        """
        at = self._clock()
        rows = await trio.to_thread.run_sync(
            lambda: [self._row(domain.id, name, values, at) for name, values in given.items()]
        )
        known = {row.kind for row in rows} | {kind for domain_id, kind in self._rows.value if domain_id == domain.id}
        if factor in self._kinds and factor not in known:
            raise Invalid(f"missing {factor}", (FieldError(factor.value, "is needed: it was not configured before"),))

        def work(tx: Tx) -> None:
            for row in rows:
                repo.save(tx, row)
            set_first_factor(tx, domain.id, factor)
            changes = audit.changed({"firstFactor": domain.first_factor.value}, {"firstFactor": factor.value})
            audit.record(
                tx,
                "domain.first_factor",
                at=at,
                tenant_id=domain.tenant_id,
                domain_id=domain.id,
                target=f"domain {domain.id} {domain.name}",
                changes={**changes, **{row.kind: [audit.HIDDEN, audit.HIDDEN] for row in rows}},
            )

        await self._configuration.change(work)
        self._let_go(domain.id, self._rows.value.get((domain.id, factor.value)))
        log.info("a domain's first factor was set", domain=domain.id, first_factor=factor.value, configured=list(given))

    def _row(self, domain_id: int, name: str, values: Mapping[str, object], at: int) -> FactorRow:
        try:
            fields = self._kinds[FirstFactor(name)].fields.model_validate(values)
        except ValidationError as error:
            raise refusal(error, within=name) from None
        refused = fields.refused(self._host(domain_id))
        if refused is not None:
            raise Invalid(f"invalid {refused.field}", (FieldError(f"{name}.{refused.field}", refused.message),))
        sealed = self._vault.seal(json.dumps(revealed(fields)).encode(), repo.identity(domain_id, name))
        return FactorRow(domain_id, name, sealed, at)

    def shown(self, domain_id: int) -> dict[str, dict[str, object]]:
        """What is configured for a domain, by kind and without secrets; empty where it cannot be read."""
        found: dict[str, dict[str, object]] = {}
        for (owner, kind), row in self._rows.value.items():
            if owner == domain_id:
                try:
                    found[kind] = shown(self._open(row)[1])
                except (SecretError, ValueError, KeyError):
                    found[kind] = {}
        return found

    def check_key(self, tx: Tx) -> None:
        """Open what is sealed in a store that is to take the place of this one. SecretError."""
        for row in repo.load(tx).values():
            self._vault.open(row.fields, row.identity)


async def _retire(ready: _Ready) -> None:
    await trio.sleep(RETIRE_S)
    ready.scope.cancel()
