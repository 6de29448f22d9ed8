"""The service for domains."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Final, cast

import structlog
import trio

from sallyport.areas.domains import repo
from sallyport.areas.domains.domain import (
    RULES,
    SETTINGS,
    WEB,
    Domain,
    DomainTable,
    Fallback,
    Mode,
    folded_realms,
)
from sallyport.areas.domains.repo import Change, State, Update
from sallyport.base.answer import answer
from sallyport.base.clock import SECOND, Clock, iso, now_us
from sallyport.base.errors import NotFound, invalid_field
from sallyport.base.text import existing, fold
from sallyport.base.wire import JSON
from sallyport.metrics import MAX_NAMES, DomainMetrics
from sallyport.store import audit
from sallyport.store.model import T, Tx, Work
from sallyport.store.snapshot import Configuration

NO_PROVIDER = "this domain has no MFA provider: its fallback ({}) applies to every login"
NEW_WEB: Final = (
    "cannot be web for a new domain: add the domain, set its MFA provider own with the factor oidc, and then its first "
    "factor"
)
WITHOUT_EFFECT: Final = "the first factor is web, so {} without effect: each login needs the identity provider"

MINUTE = 60 * SECOND

log = structlog.get_logger()


class Domains:
    """The domains of all tenants. A read never waits for the store. A change is in effect when its call returns.

    has_provider, provider_hints: functions that return whether a domain has an MFA provider, and hints on it; the area
    of MFA providers replaces them.
    renamed: a function that is called in the transaction that renames a domain, with the id of the tenant and the
    forms for comparison of the names before and after; the area of configuration as code replaces it.
    snapshot: the current domains, for the login path.
    """

    def __init__(
        self,
        configuration: Configuration,
        metrics: DomainMetrics,
        clock: Clock = now_us,
    ) -> None:
        self._configuration = configuration
        self.has_provider: Callable[[int], bool] = lambda _domain_id: False
        self.renamed: Callable[[Tx, int, str, str], None] = lambda *_: None
        self.provider_hints: Callable[[int], Sequence[str]] = lambda _domain_id: ()
        self._clock = clock
        self.snapshot = configuration.hold(repo.load, DomainTable())
        metrics.watch(self._modes, self._names)

    @property
    def table(self) -> DomainTable:
        """The table of the current domains."""
        return self.snapshot.value

    def tenant_of(self, domain_id: int) -> int | None:
        """Return the id of the tenant that a domain belongs to, or None if the domain does not exist."""
        domain = self.table.by_id.get(domain_id)
        return None if domain is None else domain.tenant_id

    def of_tenant(self, tenant_id: int) -> Sequence[Domain]:
        """Return a tenant's domains, ordered by id."""
        return self.table.by_tenant.get(tenant_id, ())

    def named(self, tenant_id: int, name_or_id: str) -> Domain:
        """Return a tenant's domain by its id or its name. Raises NotFound."""
        return _one(self.of_tenant(tenant_id), name_or_id)

    def anywhere(self, name_or_id: str) -> Domain:
        """Return the domain of the installation with an id or a name.

        Raises NotFound if no domain has the name, or if several tenants have a domain of this name.
        """
        return _one(self.table.by_id.values(), name_or_id)

    def id_of(self, name_or_id: str) -> int:
        """Return the id of the domain of the installation with an id or a name. Raises NotFound as `anywhere` does."""
        return self.anywhere(name_or_id).id

    async def add(
        self,
        tenant: int | Work[int],
        name: str,
        *,
        realms: Sequence[str] = (),
        **settings: object,
    ) -> int:
        """Add a domain, and return its id. Raises Conflict if the name or a realm is taken in the tenant. Raises
        Invalid if its first factor is `web`, which needs an MFA provider.

        tenant: the internal id of the tenant, or a function that finds or creates the tenant in the same transaction.
        settings: the values of further fields of `Domain`, by name.
        """
        if settings.get("first_factor") is WEB:
            raise invalid_field("firstFactor", NEW_WEB)
        at = self._clock()
        keys = await trio.to_thread.run_sync(folded_realms, (name, *realms))

        def transaction(tx: Tx) -> int:
            tenant_id = tenant if isinstance(tenant, int) else tenant(tx)
            given = {**settings, "realms": (*realms,), "realm_keys": (*keys.values(),)}
            return _add(tx, Domain(0, tenant_id, name, **given), keys, at)  # type: ignore[arg-type]

        return await self._configuration.change(transaction)

    def write(self, tx: Tx, tenant_id: int, domain_id: int | None, name: str, settings: Mapping[str, object]) -> None:
        """Add or change a domain, in the transaction of a caller. Raises NotFound, Conflict.

        domain_id: None adds a domain. settings: the values of SETTINGS, by the names of the fields of `Domain`.

        During break-glass, the mode is the one to which the domain returns.
        """
        at, realms = self._clock(), cast(tuple[str, ...], settings["realms"])
        keys = folded_realms((name, *realms))
        if domain_id is None:
            given = {**settings, "realm_keys": (*keys.values(),)}
            _add(tx, Domain(0, tenant_id, name, **given), keys, at)  # type: ignore[arg-type]
            return
        before = repo.find(tx, domain_id)
        gone = [] if before is None else [each for each in before.realms if fold(each) not in keys.values()]
        others = {field: value for field, value in settings.items() if field not in ("mode", "fallback", "realms")}
        _update(tx, domain_id, Update(name, realms, gone, others), {**folded_realms(gone), **keys}, at)
        mode, fallback = cast(Mode, settings["mode"]), cast(Fallback, settings["fallback"])
        _recorded(tx, "domain.mode", lambda: repo.set_kept_mode(tx, domain_id, mode, fallback), [domain_id], at)

    async def set_mode(
        self,
        domain_ids: Sequence[int],
        mode: Mode | None,
        fallback: Fallback | None = None,
        *,
        revert_after_minutes: int | None = None,
    ) -> None:
        """Switch domains from the next request on.

        mode, fallback: the new values; None keeps a value. revert_after_minutes: the time after which the change is
        reverted unless an admin confirms it. None makes the change permanent, and confirms an earlier unconfirmed
        change. A new mode ends break-glass for these domains. Without one, break-glass stays.
        """
        at = self._clock()
        reverts_at = None if revert_after_minutes is None else at + revert_after_minutes * MINUTE
        change = Change(mode, fallback, reverts_at)
        before = self.table.by_id
        await self._switch("domain.mode", lambda tx: repo.set_mode(tx, domain_ids, change, at), domain_ids)
        for domain_id in domain_ids:
            domain, former = await self.changed(domain_id), before.get(domain_id)
            log.info(
                "domain_mode_set",
                domain=domain_id,
                mode=domain.mode.value,
                fallback=domain.fallback.value,
                former_mode=None if former is None else former.mode.value,
                former_fallback=None if former is None else former.fallback.value,
                reverts_at=None if domain.reverts_at is None else iso(domain.reverts_at),
            )

    async def update(self, domain_id: int, change: Update) -> Domain:
        """Change settings of a domain from the next request on, and return the domain.

        A renamed domain keeps its former name as a realm. Raises NotFound. Raises Conflict if a name or realm belongs
        to another domain, or if the domain would have too many realms.
        """
        at = self._clock()
        named = (*filter(None, (change.name,)), *change.add_realms, *change.remove_realms)
        keys = await trio.to_thread.run_sync(folded_realms, named)

        def transaction(tx: Tx) -> Domain:
            before, after = _update(tx, domain_id, change, keys, at)
            self.renamed(tx, after.tenant_id, before.realm_keys[0], after.realm_keys[0])
            return after

        return await self._configuration.change(transaction)

    async def revert(self, domain_id: int, reverts_at: int) -> bool:
        """Revert an unconfirmed change. Return False if an admin has confirmed the change, or has changed the mode
        again."""
        if not await self._switch(
            "domain.revert", lambda tx: repo.revert(tx, domain_id, reverts_at), [domain_id], urgent=True
        ):
            return False
        domain = self.table.by_id.get(domain_id)
        log.warning(
            "domain_mode_reverted",
            domain=domain_id,
            mode=None if domain is None else domain.mode.value,
            fallback=None if domain is None else domain.fallback.value,
            break_glass=domain is not None and domain.glass_mode is not None,
        )
        return True

    async def break_glass(self, fallback: Fallback | None = None) -> list[int]:
        """Switch every domain of the installation to monitor from the next request on, and return the ids of the
        domains.

        The former mode of a domain is stored until `restore` is called or an admin sets the mode.
        """
        count = await self._switch("domain.break_glass", lambda tx: repo.break_glass(tx, fallback), urgent=True)
        log.warning("break_glass_activated", domains=count)
        return list(self.table.by_id)

    async def restore(self) -> list[int]:
        """Restore the modes before break-glass, and return the restored domains.

        A domain whose mode an admin has set after break-glass keeps its mode. If break-glass is inactive, no domain is
        restored.
        """
        restored = await self._switch("domain.restore", repo.restore, urgent=True)
        log.warning("break_glass_restored", domains=len(restored))
        return restored

    async def _switch(
        self, action: str, work: Work[T], domain_ids: Sequence[int] | None = None, *, urgent: bool = False
    ) -> T:
        """Run `work`, which changes the modes of domains. Write an entry to the audit trail for each changed domain.

        action: the name of the change in the audit trail. domain_ids: the domains that `work` may change; None for all
        domains of the installation. urgent: as for `Configuration.change`.
        """
        at = self._clock()

        return await self._configuration.change(
            lambda tx: _recorded(tx, action, lambda: work(tx), domain_ids, at), urgent=urgent
        )

    async def changed(self, domain_id: int) -> Domain:
        """Return a domain after a change, also if the change waits for the end of an apply. Raises NotFound,
        StoreError."""
        return (await self._configuration.current(self.snapshot)).present(domain_id)

    def warnings(self, domain: Domain) -> list[str]:
        """Return hints on a domain's mode and MFA provider, such as a missing provider."""
        alone = domain.mode is Mode.ENFORCE and not self.has_provider(domain.id)
        hints = [NO_PROVIDER.format(domain.fallback)] if alone else list(self.provider_hints(domain.id))
        return [*hints, *_without_effect(domain)]

    def shown(self) -> list[tuple[str, str]]:
        """Return the label and the mode of each domain that has its own label in metrics.

        The number of labels is limited. The domains beyond this limit share the label `other`.
        """
        return [(domain.label, domain.mode.value) for domain in islice(tuple(self.table.by_id.values()), MAX_NAMES)]

    def _modes(self) -> dict[tuple[str, ...], float]:
        return {
            (domain.label, mode): float(domain.mode is mode)
            for domain in tuple(self.table.by_id.values())
            for mode in Mode
        }

    def _names(self) -> dict[tuple[str, ...], float]:
        shown = islice(
            tuple(self.table.by_id.values()), MAX_NAMES
        )  # the other domains share the label `other`, without a name
        return {(domain.label, domain.name): 1.0 for domain in shown}


def _one(domains: Collection[Domain], name_or_id: str) -> Domain:
    """Return the domain with an id or a name. Raises NotFound.

    The id takes precedence. Otherwise a domain whose name is a number could hide the domain with that id.
    """
    found = [each for each in domains if each.label == name_or_id]
    key = fold(name_or_id)
    found = found or [each for each in domains if each.realm_keys[0] == key]
    if len(found) > 1:
        raise NotFound(f"{len(found)} tenants have a domain {name_or_id}: give the id of the domain instead")
    if not found:
        raise NotFound(f"no domain {name_or_id}{existing(name_or_id, (each.name for each in domains))}")
    return found[0]


def _without_effect(domain: Domain) -> list[str]:
    """Return a hint on the settings that a domain with the first factor `web` does not apply."""
    if domain.first_factor is not WEB:
        return []
    found = {
        "monitor mode": domain.mode is Mode.MONITOR,
        "fallbackAction allow": domain.fallback is Fallback.ALLOW,
        "rememberHours": domain.remember_h > 0,
        "unknownStations rules": domain.unknown_stations is RULES,
    }
    names = [name for name, is_set in found.items() if is_set]
    return [WITHOUT_EFFECT.format(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}")] if names else []


def _add(tx: Tx, domain: Domain, keys: Mapping[str, str], at: int) -> int:
    domain_id = repo.add(tx, domain, keys, at)
    shown = answer(domain, warnings=[])
    fields = {each: shown[each] for each in SETTINGS}
    audit.record(
        tx,
        "domain.add",
        at=at,
        tenant_id=domain.tenant_id,
        domain_id=domain_id,
        target=f"domain {domain_id} {domain.name}",
        changes=audit.changed({}, fields),
    )
    return domain_id


def _update(tx: Tx, domain_id: int, change: Update, keys: Mapping[str, str], at: int) -> tuple[Domain, Domain]:
    before, after = repo.update(tx, domain_id, change, keys)
    changes = audit.changed(answer(before, warnings=[]), answer(after, warnings=[]))
    if changes:
        audit.record(
            tx,
            "domain.set",
            at=at,
            tenant_id=after.tenant_id,
            domain_id=domain_id,
            target=f"domain {domain_id} {before.name}",
            changes=changes,
        )
    return before, after


def _recorded(tx: Tx, action: str, work: Callable[[], T], domain_ids: Sequence[int] | None, at: int) -> T:
    """Run `work`, which changes modes, and record the domains that it has changed; see `Domains._switch`."""
    before = repo.states(tx, domain_ids)
    result = work()
    for domain_id, state in repo.states(tx, domain_ids).items():
        if state != before[domain_id]:
            audit.record(
                tx,
                action,
                at=at,
                tenant_id=state.tenant_id,
                domain_id=domain_id,
                target=f"domain {domain_id} {state.name}",
                changes=audit.changed(_audited(before[domain_id]), _audited(state)),
            )
    return result


def _audited(state: State) -> dict[str, JSON]:
    return {
        "enforcementMode": state.enforcement_mode,
        "fallbackAction": state.fallback_action,
        "revertsAt": None if state.reverts_at is None else iso(state.reverts_at),
        "restoreMode": state.restore_mode,
        "restoreFallback": state.restore_fallback,
    }
