"""Domains in files (`sallyport apply`).

The mode of a domain stays if its file does not name it, so that a folder can leave the switch to enforce to people.
During break-glass, a file sets the mode to which the domain returns: files never end it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final, cast

from sallyport.areas.configured import REMOVE_DOMAIN, Change, Kind, Stored
from sallyport.areas.domains import repo
from sallyport.areas.domains.bodies import AddDomain, UpdateDomain
from sallyport.areas.domains.domain import SETTINGS, Domain
from sallyport.areas.domains.removal import Removal
from sallyport.areas.domains.service import Domains
from sallyport.base.answer import answer
from sallyport.base.model import with_fields
from sallyport.base.text import fold
from sallyport.store.model import Tx

_DEFAULTS: Final = {each.name: each.default for each in fields(Domain)}
_OTHERS: Final = {
    name: (cast(Any, field.annotation), field)
    for name, field in UpdateDomain.model_fields.items()
    if name in SETTINGS and name not in AddDomain.model_fields
}
MODE: Final = frozenset({"enforcementMode", "fallbackAction"})


@with_fields(_OTHERS)
class WholeDomain(AddDomain):
    """A domain with all its settings, in a file."""


class DomainKind(Kind[AddDomain]):
    """Domains."""

    name = "domain"
    body = WholeDomain
    level = 0
    key = "domainName"
    without = frozenset({"firstFactor"})
    keeps = frozenset({"enforcementMode"})
    removed_first = False
    names = "select id, tenant_id as owner, name from domains"
    listed_by = ("/ad/GetAllDomains", "domains")
    changed_by = MappingProxyType(
        {"/ad/UpdateDomain": "domainId", "/ad/updateDomainEnforcement": "domainId", REMOVE_DOMAIN: "domainId"}
    )
    harmless = frozenset({"confirm"})

    def __init__(self, service: Domains, removal: Removal) -> None:
        self._service = service
        self._removal = removal

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        modes = repo.states(tx, list(domains))
        for domain in repo.load(tx).by_tenant.get(tenant_id, ()):
            shown, mode = answer(domain, warnings=[]), modes[domain.id]
            given: dict[str, object] = {name: shown[name] for name in self.fields()}
            given["enforcementMode"] = mode.restore_mode or mode.enforcement_mode
            given["fallbackAction"] = mode.restore_fallback or mode.fallback_action
            yield Stored(domain.id, given)

    def values(self, body: AddDomain) -> dict[str, object]:
        given = {name: getattr(body, name) for name in self.fields()}
        found = {
            name: _DEFAULTS.get(SETTINGS.get(name, "")) if value is None else value for name, value in given.items()
        }
        return {**found, "realms": {fold(realm) for realm in body.realms}}

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[AddDomain]]) -> None:
        for each in changes:
            domain_id = int(each.before.id) if each.before else None
            if each.body is None:
                self._removal.mark(tx, domain_id or 0)
                continue
            given = {
                SETTINGS[name]: value
                for name, value in {**self.values(each.body), "realms": tuple(each.body.realms)}.items()
                if name in SETTINGS
            }
            self._service.write(tx, tenant_id, domain_id, each.body.domainName, given)

    def written(self) -> None:
        self._removal.wake()
