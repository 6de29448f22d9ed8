"""Set and show the configurations of the domains' first factors. Secrets are never shown."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

import structlog
import trio
from pydantic import ValidationError

from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.domains.repo import set_first_factor
from sallyport.areas.login.first import repo
from sallyport.areas.login.first.checker import Checker, Host
from sallyport.areas.login.first.fields import Fields, LdapFields, UpstreamFields
from sallyport.areas.login.first.repo import FactorRow
from sallyport.areas.login.first.service import FirstFactors
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, FieldError, Invalid, SecretError
from sallyport.base.validation import refusal
from sallyport.certs.expiry import pem_texts
from sallyport.outgoing.egress import is_address
from sallyport.outgoing.fields import revealed, shown
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault

KINDS: Final[Mapping[FirstFactor, type[Fields]]] = {FirstFactor.LDAP: LdapFields, FirstFactor.RADIUS: UpstreamFields}
"""The first factors that ask another server, with their fields."""

log = structlog.get_logger()


class Hosts(Protocol):
    """A function that returns the services that a domain's checker may use. tenant_id: the tenant of a domain that is
    being added, whose id is 0."""

    def __call__(self, domain_id: int, tenant_id: int | None = None) -> Host: ...


class FirstFactorSettings:
    """The configurations of the first factors of all domains.

    factors: the first factors that use these configurations. kinds: the fields of each kind of first factor. host: a
    function that returns the services that a domain's checker may use. web_problem: a function that returns why the
    first factor of a domain cannot be `web`, or an empty text.
    """

    def __init__(
        self,
        configuration: Configuration,
        vault: Vault,
        kinds: Mapping[FirstFactor, type[Fields]],
        host: Hosts,
        clock: Clock,
        web_problem: Callable[[Tx, int], str],
    ) -> None:
        self._configuration = configuration
        self._vault = vault
        self._kinds = kinds
        self._host = host
        self._clock = clock
        self._web_problem = web_problem
        self.factors = FirstFactors(configuration, self._checker)

    def _checker(self, row: FactorRow) -> Checker:
        """Return a checker for a stored configuration. Raises SecretError, ValueError or KeyError if the configuration
        cannot be read."""
        return self._open(row).checker(self._host(row.domain_id))

    def _open(self, row: FactorRow) -> Fields:
        kind = self._kinds[FirstFactor(row.kind)]
        return kind.model_validate(json.loads(self._vault.open(row.fields, row.identity)))

    async def set(self, domain: Domain, factor: FirstFactor, given: Mapping[str, Mapping[str, object]]) -> None:
        """Set a domain's first factor. It applies from the next login on. Raises Invalid with the wrong fields. Raises
        Conflict if the MFA provider or a login rule of the domain does not fit the first factor `web`.

        given: the fields of each kind to configure. A kind may be absent if it was configured before.
        """
        at = self._clock()
        rows = await trio.to_thread.run_sync(
            lambda: [self._row(domain.id, name, values, at) for name, values in given.items()]
        )
        known = {row.kind for row in rows} | {
            kind for domain_id, kind in self.factors.rows.value if domain_id == domain.id
        }
        if factor in self._kinds and factor not in known:
            wrong = FieldError(factor.value, "is needed, because nothing was configured before")
            raise Invalid(f"missing {factor}", (wrong,))

        await self._configuration.change(lambda tx: self._save(tx, domain, factor, rows, at))
        self.retire(domain.id, factor)
        log.info("first_factor_set", domain=domain.id, first_factor=factor.value, configured=list(given))

    @property
    def models(self) -> Mapping[FirstFactor, type[Fields]]:
        """The models of the configurations."""
        return self._kinds

    def validated(self, name: str, values: Mapping[str, object]) -> Fields:
        """Return the configuration of a kind. Raises Invalid."""
        try:
            return self._kinds[FirstFactor(name)].model_validate(values)
        except ValidationError as error:
            raise refusal(error, within=name) from None

    def read(self, tx: Tx, domain_id: int) -> dict[str, dict[str, object]]:
        """Return a domain's configurations by kind, with their secrets. Those that cannot be read are left out."""
        found = dict[str, dict[str, object]]()
        for (owner, kind), row in repo.load(tx).items():
            with suppress(SecretError, ValueError, KeyError):
                if owner == domain_id:
                    found[kind] = revealed(self._open(row))
        return found

    def write(self, tx: Tx, domain: Domain, factor: FirstFactor, given: Mapping[str, Mapping[str, object]]) -> None:
        """Set a domain's first factor, in the transaction of a caller, which calls `check_web` at the end. Raises
        Invalid."""
        at = self._clock()
        rows = [self._sealed(domain.id, name, self.validated(name, values), at) for name, values in given.items()]
        _write(tx, domain, factor, rows, at)

    def check_web(self, tx: Tx, domain_id: int) -> None:
        """Raise Conflict if the MFA provider or a login rule of a domain does not fit the first factor `web`."""
        if problem := self._web_problem(tx, domain_id):
            raise Conflict(f"the first factor cannot be web: {problem}")

    def _save(self, tx: Tx, domain: Domain, factor: FirstFactor, rows: Sequence[FactorRow], at: int) -> None:
        if factor is FirstFactor.WEB:
            self.check_web(tx, domain.id)
        _write(tx, domain, factor, rows, at)

    def retire(self, domain_id: int, factor: FirstFactor) -> None:
        """Stop the checker of a domain's former configuration. factor: the first factor that is set now."""
        self.factors.retire(domain_id, self.factors.rows.value.get((domain_id, factor.value)))

    def _sealed(self, domain_id: int, name: str, fields: Fields, at: int) -> FactorRow:
        sealed = self._vault.seal(json.dumps(revealed(fields)).encode(), repo.identity(domain_id, name))
        return FactorRow(domain_id, name, sealed, at)

    def refuse(self, domain_id: int, name: str, fields: Fields, tenant_id: int | None = None) -> None:
        """Raise Invalid if a configuration cannot be used in a domain. tenant_id: the tenant of a domain that is being
        added, whose id is 0."""
        refused = fields.refused(self._host(domain_id, tenant_id))
        if refused is not None:
            raise Invalid(f"invalid {refused.field}", (replace(refused, field=f"{name}.{refused.field}"),))

    def _row(self, domain_id: int, name: str, values: Mapping[str, object], at: int) -> FactorRow:
        fields = self.validated(name, values)
        self.refuse(domain_id, name, fields)
        return self._sealed(domain_id, name, fields, at)

    def shown(self, domain_id: int) -> dict[str, dict[str, object]]:
        """Return a domain's configurations by kind, without secrets. If a configuration cannot be read, its fields are
        empty."""
        found: dict[str, dict[str, object]] = {}
        for (owner, kind), row in self.factors.rows.value.items():
            if owner == domain_id:
                try:
                    found[kind] = shown(self._open(row))
                except (SecretError, ValueError, KeyError):
                    found[kind] = {}
        return found

    def certificates(self) -> Iterator[tuple[int, str]]:
        """Yield (id of the domain, certificates in PEM) for each certificate field of the stored configurations that
        can be read. Call this method in a thread."""
        for row in tuple(self.factors.rows.value.values()):
            try:
                fields = json.loads(self._vault.open(row.fields, row.identity))
            except (SecretError, ValueError):
                continue
            yield from ((row.domain_id, pem) for pem in pem_texts(fields))

    def egress_warnings(self, domain_id: int, factor: FirstFactor) -> list[str]:
        """Return a warning for each server whose address the egress rules deny. Names are not resolved."""
        row = self.factors.rows.value.get((domain_id, factor.value))
        egress = self._host(domain_id).egress
        return [
            f"servers.{number}: the setting egress does not allow this address, so no password can be checked there"
            for number, host in enumerate([] if row is None else self._open(row).hosts())
            if is_address(host) and not egress.allows(host)
        ]

    def egress_advice(self, domain: Domain) -> list[str]:
        """Return hints for admins of the installation. If the egress rules have recently denied a host to the domain's
        tenant, a hint says how to allow this host."""
        return self._host(domain.id).egress.advice()


def _write(tx: Tx, domain: Domain, factor: FirstFactor, rows: Sequence[FactorRow], at: int) -> None:
    for row in rows:
        repo.save(tx, row)
    set_first_factor(tx, domain.id, factor)
    changes = audit.changed({"firstFactor": domain.first_factor.value}, {"firstFactor": factor.value})
    changes |= {row.kind: [audit.HIDDEN, audit.HIDDEN] for row in rows}
    audit.record_in(tx, "domain.first_factor", domain.id, f"domain {domain.id} {domain.name}", changes, at=at)
