"""Manage the MFA providers of the domains. Admins set, show, check and remove a provider. The login path calls the
provider."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog
import trio
from pydantic import SecretStr, ValidationError

from sallyport.areas.mfa import repo
from sallyport.areas.mfa.circuit import NO_PROVIDER, Attached, Guarded, Health, Meter, Unavailable
from sallyport.areas.mfa.host import ConfiguredProvider, Fields, Host
from sallyport.areas.mfa.provider import MAX_TIMEOUT_S, NO_WEB, ProviderError, Strength
from sallyport.areas.mfa.repo import ProviderRow
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, FieldError, Invalid, NotFound, SecretError, invalid_field
from sallyport.base.model import FieldCheck, Unknown, as_given
from sallyport.base.text import existing
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON
from sallyport.outgoing.fields import revealed, shown
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault

CHECK_S: Final = 20.0

MAX_NAMED: Final = 10
"""Maximum number of login rules that a message names."""
_NO_PROVIDER = "the domain has no MFA provider: set one first"

log = structlog.get_logger()

_Key = int | tuple[int, str]
"""The key of a provider: the domain id for the default provider, otherwise the domain id and the name."""
UsedBy = Callable[[Tx, int], Mapping[str, list[str]]]
"""A function that returns what names the providers of a domain, by the name of the provider."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of testing a provider. provider: the name of the provider. problem: the error and its remedy, or empty
    if the test has succeeded. found: the result of a successful test, in words."""

    provider: str
    problem: str
    found: str = ""


@dataclass(frozen=True, slots=True)
class ShownProvider:
    """A provider of a domain for admins. is_default: whether the provider is asked if no login rule names another one.
    timeout_s: the time that a user may take to answer, in seconds. fields: the fields without secrets."""

    name: str
    is_default: bool
    timeout_s: int
    fields: Mapping[str, object]


class Providers:
    """The MFA providers of all domains. `run` must be running, because it closes replaced providers.

    A domain has a default provider. Further ones may be beside it, each of another kind, for login rules that name
    them. In each method, `name` is the name of a provider; if it is empty, the default provider is meant.

    kinds: the provider classes by name. host: a function that returns the services that the provider of a domain may
    use. used_by: functions that return what names the providers of a domain. is_web: returns whether the first factor
    of a domain is `web`, so that its provider must confirm users whose password nobody has checked.
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
        self._further = configuration.hold(repo.load_further, dict[int, dict[str, ProviderRow]]())
        self._ready: dict[_Key, tuple[ProviderRow, Attached | Unavailable]] = {}
        self._fields: dict[_Key, Fields] = {}  # of the providers in `_ready`
        self.used_by: list[UsedBy] = []
        self.is_web: Callable[[Tx, int], bool] = lambda _tx, _domain_id: False
        self._send, self._receive = trio.open_memory_channel[Guarded](1000)

    # --- for the login path -----------------------------------------------------------------------------------

    def of(self, domain_id: int, name: str = "") -> Attached | Unavailable:
        """Return a provider of a domain, or the reason why there is none. A change of the configuration takes effect at
        the next call of this method."""
        key, row = self._find(domain_id, name) if name else (domain_id, self._rows.value.get(domain_id))
        ready = self._ready.get(key)
        if row is None and ready is None:
            return NO_PROVIDER
        if ready is not None and ready[0] is row:
            return ready[1]
        if row is None:
            attached: Attached | Unavailable = NO_PROVIDER
            self._ready.pop(key, None)
            self._fields.pop(key, None)
        elif ready is not None and (ready[0] == row or self._is_resealed(key, ready[0], row)):
            attached = ready[1]
            self._ready[key] = row, attached
            return attached
        else:
            attached = self._attach(key, row)
            self._ready[key] = row, attached
        if ready is not None and isinstance(ready[1], Attached):
            self._retire(ready[1].provider)
        return attached

    def _find(self, domain_id: int, name: str) -> tuple[_Key, ProviderRow | None]:
        """Return the key and the row of a provider. The key of the default provider is the domain id, also if the
        provider is named. The row is None if the domain has no such provider."""
        default = self._rows.value.get(domain_id)
        if not name or (default is not None and default.provider == name):
            return domain_id, default
        return (domain_id, name), self._further.value.get(domain_id, {}).get(name)

    def _is_resealed(self, key: _Key, before: ProviderRow, row: ProviderRow) -> bool:
        """Return whether a row only has another master key. The provider then stays, with its pending prompts."""
        if key not in self._fields or replace(before, fields=row.fields) != row:
            return False
        try:
            return self._open(row)[1] == self._fields[key]
        except (SecretError, ValueError, KeyError):
            return False

    def _attach(self, key: _Key, row: ProviderRow) -> Attached | Unavailable:
        self._fields.pop(key, None)
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
        self._fields[key] = fields
        guarded = Guarded(provider, self._meter, now=trio.current_time, clock=self._clock)
        return Attached(row.provider, f"{row.provider}/{row.changed_at}", guarded, float(row.timeout_s))

    def _open(self, row: ProviderRow) -> tuple[type[ConfiguredProvider], Fields]:
        kind = self._kinds[row.provider]
        clear = self._vault.open(row.fields, row.identity)
        # A field that was absent is stored as its default value, which validation may not accept.
        return kind, kind.fields.model_validate(as_given(kind.fields, json.loads(clear), nothing=(None, "")))

    def fields_of(self, domain_id: int, name: str) -> Fields | None:
        """Return the configuration of a domain's provider with a name, with its secrets. Return None if the domain has
        no such provider, or if its configuration cannot be read."""
        _, row = self._find(domain_id, name)
        if row is None:
            return None
        try:
            return self._open(row)[1]
        except (SecretError, ValueError, KeyError):
            return None

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

    async def set(
        self, domain_id: int, name: str, values: Mapping[str, object], timeout_s: int, *, beside: bool = False
    ) -> None:
        """Set a domain's default provider, or one beside it. It applies from the next login on. Raises Invalid with the
        wrong fields. Raises NotFound if the domain was removed.

        Raises Conflict if the service lacks what the provider needs, if login rules name the provider that would be
        replaced, if the first factor `web` cannot use the provider, or if the default provider has the kind of a
        provider that would be beside it. values: the fields of the provider. timeout_s: the time that a user may take
        to answer, in seconds.
        """
        # The interface ignores unknown fields of the default provider.
        fields = self.validated(name, values, Unknown.REFUSED if beside else Unknown.NEAR_MISSES_REFUSED)
        await self.refuse(domain_id, name, fields)

        def transaction(tx: Tx) -> None:
            default = repo.find(tx, domain_id)
            if beside and default is not None and default.provider == name:
                raise Conflict(f"{name} is the default provider of the domain: change it with SetMFAProvider")
            if not beside and default is not None and default.provider != name:
                self._must_be_unused(tx, default)
            self.write(tx, domain_id, name, fields, timeout_s, beside=beside)
            if self.is_web(tx, domain_id) and (problem := self.web_problem(tx, domain_id)):
                raise Conflict(f"the first factor of the domain is web: {problem}")

        await self._configuration.change(transaction)
        log.info("mfa_provider_set", domain=domain_id, provider=name, timeout_s=timeout_s)

    def validated(self, name: str, values: Mapping[str, object], unknown: Unknown) -> Fields:
        """Return the fields of a kind of provider. unknown: what happens to unknown fields. Raises Invalid."""
        kind = self._kinds.get(name)
        if kind is None:
            raise Invalid(
                "invalid provider", (FieldError("provider", f"must be one of {', '.join(sorted(self._kinds))}"),)
            )
        try:
            return kind.fields.model_validate(as_given(kind.fields, values), context=FieldCheck(unknown))
        except ValidationError as error:
            raise refusal(error) from None

    async def refuse(self, domain_id: int, name: str, fields: Fields) -> None:
        """Raise Conflict or Invalid if the service cannot do what a configuration demands."""
        refuse: Callable[[Fields, Host], Awaitable[None]] | None = getattr(self._kinds.get(name), "refuse", None)
        if refuse is not None:
            await refuse(fields, self._host(domain_id))

    @property
    def models(self) -> Mapping[str, type[Fields]]:
        """The models of the fields of all kinds of providers, by name."""
        return {name: kind.fields for name, kind in self._kinds.items()}

    def read(self, tx: Tx, domain_id: int) -> list[tuple[ProviderRow, Fields, bool]]:
        """Return each provider of a domain with its fields, and whether it is beside the default one. Those that cannot
        be read are left out."""
        default, found = repo.find(tx, domain_id), list[tuple[ProviderRow, Fields, bool]]()
        for name in repo.names(tx, domain_id):
            is_default = default is not None and default.provider == name
            row = default if is_default else repo.find_further(tx, domain_id, name)
            with suppress(SecretError, ValueError, KeyError):
                if row is not None:
                    found.append((row, self._open(row)[1], not is_default))
        return found

    def write(self, tx: Tx, domain_id: int, name: str, fields: Fields | None, timeout_s: int, *, beside: bool) -> None:
        """Set or remove a provider, in the transaction of a caller, which checks the first factor `web` and
        `check_uses` at the end. fields: None removes it. beside: a default provider is beside none then. Raises as
        `set` and `delete` do."""
        if fields is None:
            self._delete(tx, domain_id, name)
            return
        sealed = self._vault.seal(json.dumps(revealed(fields)).encode(), repo.identity(domain_id, name))
        row = ProviderRow(domain_id, name, sealed, timeout_s, self._clock())
        default = repo.find(tx, domain_id)
        if beside:
            before = repo.find_further(tx, domain_id, name)
            if default is not None and default.provider == name:
                before = default
                repo.delete(tx, domain_id)
            repo.save_further(tx, row)
        else:
            before = default
            repo.save(tx, row)
        _record(tx, "provider.set", row, row.changed_at, audit.changed(self._audited(before), self._audited(row)))

    def shown(self, domain_id: int, name: str = "") -> ShownProvider:
        """Return a provider of a domain. Raises NotFound if the domain has no such provider. Raises Conflict if its
        configuration cannot be read."""
        key, row = self._find(domain_id, name)
        if row is None:
            raise self._not_found(domain_id, name)
        is_default = key == domain_id
        if row.provider not in self._kinds:
            return ShownProvider(row.provider, is_default, row.timeout_s, {})
        try:
            _, fields = self._open(row)
        except (SecretError, ValueError):
            raise Conflict(
                f"the configuration of the MFA provider {row.provider} cannot be read: set it again"
            ) from None
        return ShownProvider(row.provider, is_default, row.timeout_s, shown(fields))

    def all_of(self, domain_id: int) -> list[ProviderRow]:
        """Return the providers of a domain, ordered by name, the default one first."""
        default = self._rows.value.get(domain_id)
        further = self._further.value.get(domain_id, {})
        return [*further.values()] if default is None else [default, *further.values()]

    def is_default(self, row: ProviderRow) -> bool:
        """Return whether a provider is the default one of its domain."""
        return self._rows.value.get(row.domain_id) == row

    async def delete(self, domain_id: int, name: str = "") -> None:
        """Remove a provider of a domain. Raises NotFound if the domain has no such provider. Raises Conflict if login
        rules name it, or if the first factor `web` needs it."""
        await self._configuration.change(lambda tx: self._delete(tx, domain_id, name))
        for each in ("", name):  # close the removed one
            self.of(domain_id, each)
        log.info("mfa_provider_removed", domain=domain_id)

    def _delete(self, tx: Tx, domain_id: int, name: str) -> None:
        row = repo.find(tx, domain_id)
        if name and (row is None or row.provider != name):
            row = repo.find_further(tx, domain_id, name)
            if row is None:
                raise self._not_found(domain_id, name)
            self._must_be_unused(tx, row)
            repo.delete_further(tx, domain_id, name)
        elif row is None:
            raise NotFound(_NO_PROVIDER)
        else:
            self._must_be_unused(tx, row)
            if self.is_web(tx, domain_id):
                raise Conflict("the first factor of the domain is web, which needs this provider: change it first")
            repo.delete(tx, domain_id)
        _record(tx, "provider.delete", row, self._clock(), audit.changed(self._audited(row), {}))

    def _not_found(self, domain_id: int, name: str) -> NotFound:
        own = [row.provider for row in self.all_of(domain_id)]
        return NotFound(f"the domain has no MFA provider {name}{existing(name, own)}" if name and own else _NO_PROVIDER)

    def _must_be_unused(self, tx: Tx, row: ProviderRow) -> None:
        """Raise Conflict if login rules name a provider. Without it, the fallback action would decide their logins."""
        if users := self.uses(tx, row.domain_id).get(row.provider):
            raise _still_named(row.provider, users)

    def check_uses(self, tx: Tx, domain_id: int) -> None:
        """Raise Conflict if login rules name a provider that their domain does not have."""
        own = repo.names(tx, domain_id)
        for name, users in self.uses(tx, domain_id).items():
            if users and name not in own:
                raise _still_named(name, users)

    def uses(self, tx: Tx, domain_id: int) -> dict[str, list[str]]:
        """Return what names the providers of a domain, by the name of the provider."""
        found = dict[str, list[str]]()
        for used_by in self.used_by:
            for name, users in used_by(tx, domain_id).items():
                found.setdefault(name, []).extend(users)
        return found

    async def usage(self, domain_id: int) -> dict[str, list[str]]:
        """Return what names the providers of a domain. Raises StoreError."""
        return await self._configuration.store.read(lambda tx: self.uses(tx, domain_id))

    @staticmethod
    def check_name(tx: Tx, domain_id: int, name: str) -> None:
        """Raise Invalid about the field `provider` if a domain has no provider of this name."""
        own = repo.names(tx, domain_id)
        if name not in own:
            raise invalid_field("provider", f"must be an MFA provider of the domain{existing(name, own)}")

    @staticmethod
    def is_stored(tx: Tx, domain_id: int, name: str) -> bool:
        """Return whether a domain has a provider of this name."""
        return name in repo.names(tx, domain_id)

    def strongest(self, domain_id: int, name: str = "") -> Strength | None:
        """Return the highest strength that a provider's answers can have, or None if the provider cannot be asked."""
        attached = self.of(domain_id, name)
        return attached.provider.strongest if isinstance(attached, Attached) else None

    def strongest_in(self, tx: Tx, domain_id: int, name: str = "") -> Strength | None:
        """Return the highest strength that the answers of a stored provider can have, or None if the provider cannot be
        asked. Other changes of the transaction are not in memory yet."""
        default = repo.find(tx, domain_id)
        row = default if default and name in ("", default.provider) else repo.find_further(tx, domain_id, name)
        with suppress(SecretError, ValueError, KeyError):
            if row is not None:
                kind, fields = self._open(row)
                return getattr(kind(fields, self._host(domain_id)), "strongest", Strength.ANY)
        return None

    def web_problem(self, tx: Tx, domain_id: int, name: str = "") -> str:
        """Return why a provider cannot confirm users whose password nobody has checked; empty if it can."""
        row = repo.find(tx, domain_id)
        if row is None or name not in ("", row.provider):
            return NO_WEB
        try:
            kind, fields = self._open(row)
        except (SecretError, ValueError, KeyError):
            return "its configuration cannot be read: set the provider again"
        return getattr(kind(fields, self._host(domain_id)), "web_problem", NO_WEB)

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

    async def check(self, domain_id: int, name: str = "") -> Checked:
        """Test a provider of a domain. Raises NotFound if the domain has no such provider. Raises StoreError."""
        attached = self.of(domain_id, name)
        if attached is Unavailable.NONE:
            raise self._not_found(domain_id, name)
        if isinstance(attached, Unavailable):
            _, row = self._find(domain_id, name)
            name = name if row is None else row.provider
            return Checked(name, "its configuration cannot be read: set the provider again")
        try:
            found = await attached.provider.check(deadline_s=CHECK_S)
        except ProviderError as error:
            log.warning("mfa_provider_check_failed", domain=domain_id, provider=attached.name, error=str(error))
            return Checked(attached.name, str(error))
        return Checked(attached.name, "", found)

    async def check_all(self, domain_id: int) -> list[Checked]:
        """Test the providers of a domain, the default one first. Raises StoreError."""
        return [await self.check(domain_id, row.provider) for row in self.all_of(domain_id)]

    def egress_advice(self, domain_id: int) -> list[str]:
        """Return hints for admins of the installation. If the egress rules have recently denied a host to the domain's
        tenant, a hint says how to allow this host."""
        return self._host(domain_id).http.egress.advice()

    def health(self, domain_id: int, name: str = "") -> Health:
        """Return the last known state of a provider on this node. It is unknown before the first call."""
        attached = self.of(domain_id, name)
        return attached.provider.health if isinstance(attached, Attached) else Health()

    def hints(self, domain_id: int) -> Sequence[str]:
        """Return warnings about the configuration of a domain's providers."""
        found = [
            self.of(domain_id, row.provider)
            for row in self.all_of(domain_id)
            if hasattr(self._kinds.get(row.provider), "hints")
        ]
        return [hint for each in found if isinstance(each, Attached) for hint in each.provider.hints]

    def has(self, domain_id: int) -> bool:
        """Return whether a domain has a default provider."""
        return domain_id in self._rows.value


def _still_named(provider: str, users: Sequence[str]) -> Conflict:
    more = f" and {len(users) - MAX_NAMED} more" if len(users) > MAX_NAMED else ""
    return Conflict(f"the MFA provider {provider} is named by {', '.join(users[:MAX_NAMED])}{more}: change them first")


def _record(tx: Tx, action: str, row: ProviderRow, at: int, changes: dict[str, JSON]) -> None:
    target = f"MFA provider {row.provider} of domain {row.domain_id}"
    audit.record_in(tx, action, row.domain_id, target, changes, at=at)


async def _close_later(provider: Guarded) -> None:
    """Close a replaced provider when no login can use it any more, after the longest timeout of a login. If the service
    stops earlier, close the provider then."""
    try:
        await trio.sleep(MAX_TIMEOUT_S)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 2):
            await provider.aclose()
