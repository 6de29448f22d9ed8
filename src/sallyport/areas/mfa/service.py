"""Manage the MFA providers of the domains. Admins set, show, check and remove a provider. The login path calls the
provider."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
import trio
from pydantic import SecretStr, ValidationError

from sallyport.areas.mfa import repo
from sallyport.areas.mfa.circuit import NO_PROVIDER, Attached, Guarded, Health, Meter, Unavailable
from sallyport.areas.mfa.host import ConfiguredProvider, Fields, Host
from sallyport.areas.mfa.provider import LONGEST_TIMEOUT_S, ProviderError
from sallyport.areas.mfa.repo import ProviderRow
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, FieldError, Invalid, NotFound, SecretError
from sallyport.base.model import as_given
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON
from sallyport.outgoing.fields import revealed, shown
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault

CHECK_S: Final = 20.0

_NO_PROVIDER = "the domain has no MFA provider: set one first"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of testing a provider. provider: the name of the provider. problem: the error and its remedy, or empty
    if the test has succeeded. found: the result of a successful test, in words."""

    provider: str
    problem: str
    found: str = ""


class Providers:
    """The MFA providers of all domains. `run` must be running, because it closes replaced providers.

    kinds: the provider classes by name. host: a function that returns the services that the provider of a domain may
    use.
    """

    def __init__(
        self,
        configuration: Configuration,
        vault: Vault,
        kinds: Mapping[str, type[ConfiguredProvider]],
        host: Callable[[int], Host],
        meter: Meter,
        clock: Clock,
    ) -> None:
        self._configuration = configuration
        self._vault = vault
        self._kinds = kinds
        self._host = host
        self._meter = meter
        self._clock = clock
        self._rows = configuration.hold(repo.load, dict[int, ProviderRow]())
        self._ready: dict[int, tuple[ProviderRow, Attached | Unavailable]] = {}
        self._send, self._receive = trio.open_memory_channel[Guarded](1000)

    # --- for the login path -----------------------------------------------------------------------------------

    def of(self, domain_id: int) -> Attached | Unavailable:
        """Return a domain's provider, or the reason why there is none. A change of the configuration takes effect at
        the next call of this method."""
        row = self._rows.value.get(domain_id)
        ready = self._ready.get(domain_id)
        if row is None and ready is None:
            return NO_PROVIDER
        if ready is not None and ready[0] is row:
            return ready[1]
        if row is None:
            attached: Attached | Unavailable = NO_PROVIDER
            self._ready.pop(domain_id, None)
        elif ready is not None and ready[0] == row:  # the row was loaded again without a change
            attached = ready[1]
            self._ready[domain_id] = row, attached
            return attached
        else:
            attached = self._attach(row)
            self._ready[domain_id] = row, attached
        if ready is not None and isinstance(ready[1], Attached):
            self._retire(ready[1].provider)
        return attached

    def _attach(self, row: ProviderRow) -> Attached | Unavailable:
        try:
            kind, fields = self._open(row)
            provider = kind(fields, self._host(row.domain_id))
        except Exception as error:
            log.error(  # noqa: TRY400
                "mfa_provider_unreadable",
                domain=row.domain_id,
                provider=row.provider,
                error=type(error).__name__,
            )
            return Unavailable.UNREADABLE
        guarded = Guarded(provider, self._meter, now=trio.current_time, clock=self._clock)
        return Attached(row.provider, f"{row.provider}/{row.changed_at}", guarded, float(row.timeout_s))

    def _open(self, row: ProviderRow) -> tuple[type[ConfiguredProvider], Fields]:
        kind = self._kinds[row.provider]
        clear = self._vault.open(row.fields, row.identity)
        # A field that was absent is stored as its default value, which validation may not accept.
        return kind, kind.fields.model_validate(as_given(kind.fields, json.loads(clear), nothing=(None, "")))

    def _retire(self, provider: Guarded) -> None:
        """Schedule that a replaced provider is closed when no login can use it any more."""
        try:
            self._send.send_nowait(provider)
        except trio.WouldBlock:
            log.warning("mfa_provider_not_closed")

    async def run(self) -> None:
        """Close replaced providers until cancelled. Then close all other providers."""
        try:
            async with trio.open_nursery() as nursery:
                async for provider in self._receive:
                    nursery.start_soon(_close_later, provider)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 2):
                for _, attached in self._ready.values():
                    if isinstance(attached, Attached):
                        await attached.provider.aclose()

    # --- for admins -------------------------------------------------------------------------------------------

    async def set(self, domain_id: int, name: str, values: Mapping[str, object], timeout_s: int) -> None:
        """Set a domain's provider. It applies from the next login on. Raises Invalid with the wrong fields. Raises
        NotFound if the domain was removed.

        values: the fields of the provider. timeout_s: the time that a user may take to answer, in seconds.
        """
        kind = self._kinds.get(name)
        if kind is None:
            raise Invalid(
                "invalid provider", (FieldError("provider", f"must be one of {', '.join(sorted(self._kinds))}"),)
            )
        try:
            fields = kind.fields.model_validate(as_given(kind.fields, values))
        except ValidationError as error:
            raise refusal(error) from None
        sealed = self._vault.seal(json.dumps(revealed(fields)).encode(), repo.identity(domain_id, name))
        row = ProviderRow(domain_id, name, sealed, timeout_s, self._clock())

        def transaction(tx: Tx) -> None:
            before = self._audited(repo.find(tx, domain_id))
            repo.save(tx, row)
            _record(tx, "provider.set", row, row.changed_at, audit.changed(before, self._audited(row)))

        await self._configuration.change(transaction)
        log.info("mfa_provider_set", domain=domain_id, provider=name, timeout_s=timeout_s)

    def shown(self, domain_id: int) -> tuple[str, int, dict[str, object]]:
        """Return the name of a domain's provider, its timeout in seconds, and its fields without secrets.

        Raises NotFound if the domain has no provider. Raises Conflict if its configuration cannot be read.
        """
        row = self._rows.value.get(domain_id)
        if row is None:
            raise NotFound(_NO_PROVIDER)
        if row.provider not in self._kinds:
            return row.provider, row.timeout_s, {}
        try:
            _, fields = self._open(row)
        except (SecretError, ValueError):
            raise Conflict(
                f"the configuration of the MFA provider {row.provider} cannot be read: set it again"
            ) from None
        return row.provider, row.timeout_s, shown(fields)

    async def delete(self, domain_id: int) -> None:
        """Remove a domain's provider. Raises NotFound if the domain has no provider."""
        at = self._clock()

        def transaction(tx: Tx) -> None:
            row = repo.find(tx, domain_id)
            if row is None:
                raise NotFound(_NO_PROVIDER)
            repo.delete(tx, domain_id)
            _record(tx, "provider.delete", row, at, audit.changed(self._audited(row), {}))

        await self._configuration.change(transaction)
        log.info("mfa_provider_removed", domain=domain_id)

    def _audited(self, row: ProviderRow | None) -> dict[str, JSON]:
        """Return a configuration for the audit trail, with its secrets hidden. If the fields cannot be decrypted, they
        are left out."""
        if row is None:
            return {}
        audited: dict[str, JSON] = {"provider": row.provider, "timeoutSeconds": row.timeout_s}
        try:
            _, fields = self._open(row)
        except (SecretError, ValueError, KeyError):
            return audited
        secrets = {name for name in type(fields).model_fields if isinstance(getattr(fields, name), SecretStr)}
        return audited | fields.model_dump(mode="json", exclude=secrets) | dict.fromkeys(secrets, audit.HIDDEN)

    async def check(self, domain_id: int) -> Checked:
        """Test a domain's provider. Raises NotFound if the domain has no provider. Raises StoreError."""
        attached = self.of(domain_id)
        if attached is Unavailable.NONE:
            raise NotFound(_NO_PROVIDER)
        if isinstance(attached, Unavailable):
            name = self._rows.value[domain_id].provider
            return Checked(name, "its configuration cannot be read: set the provider again")
        try:
            found = await attached.provider.check(deadline_s=CHECK_S)
        except ProviderError as error:
            log.warning("mfa_provider_check_failed", domain=domain_id, provider=attached.name, error=str(error))
            return Checked(attached.name, str(error))
        return Checked(attached.name, "", found)

    def egress_advice(self, domain_id: int) -> list[str]:
        """Return hints for admins of the installation. If the egress rules have recently denied a host to the domain's
        tenant, a hint says how to allow this host."""
        return self._host(domain_id).http.egress.advice()

    def health(self, domain_id: int) -> Health:
        """Return the last known state of a domain's provider on this node. It is unknown before the first call."""
        attached = self.of(domain_id)
        return attached.provider.health if isinstance(attached, Attached) else Health()

    def has(self, domain_id: int) -> bool:
        """Return whether a domain has a provider."""
        return domain_id in self._rows.value


def _record(tx: Tx, action: str, row: ProviderRow, at: int, changes: dict[str, JSON]) -> None:
    target = f"MFA provider {row.provider} of domain {row.domain_id}"
    audit.record_in(tx, action, row.domain_id, target, changes, at=at)


async def _close_later(provider: Guarded) -> None:
    """Close a replaced provider when no login can use it any more, after the longest timeout of a login. If the service
    stops earlier, close the provider then."""
    try:
        await trio.sleep(LONGEST_TIMEOUT_S)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 2):
            await provider.aclose()
