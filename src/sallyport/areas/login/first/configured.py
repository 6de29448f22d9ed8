"""First factors of domains in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from sallyport.areas.configured import Change, Fields, Kind, Stored, as_text
from sallyport.areas.domains import repo as domains_repo
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.first.operations import SetFirstFactor
from sallyport.areas.login.first.settings import FirstFactorSettings
from sallyport.base.errors import invalid_field
from sallyport.store.model import Tx


class FirstFactorKind(Kind[SetFirstFactor]):
    """First factors. A domain has one; without an object it stays. `--prune` sets it to `local`."""

    name = "first_factor"
    body = SetFirstFactor
    key = "firstFactor"
    refers = "domain"
    keeps = frozenset({"ldap", "radius"})
    destinations = frozenset({"servers", "host", "startTls", "caCertificate"})
    changed_by = MappingProxyType({"/ad/SetFirstFactor": "domainId"})
    shown_by = MappingProxyType({"/ad/GetFirstFactor": "domainId"})

    def __init__(self, service: FirstFactorSettings) -> None:
        self._service = service
        self.parts = tuple(service.models.values())
        self._changed = dict[int, FirstFactor]()

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain in domains_repo.load(tx).by_tenant.get(tenant_id, ()):
            own, factor = self._service.read(tx, domain.id), domain.first_factor.value
            is_implied = not own and domain.first_factor is FirstFactor.LOCAL
            yield Stored(domain.id, {"domain": domain.name, "firstFactor": factor, **_compact(own)}, is_implied)

    def identity(self, fields: Fields) -> str:
        return ""

    def values(self, body: SetFirstFactor) -> dict[str, object]:
        own = {name: self._service.validated(name, values) for name, values in _given(body).items()}
        return {"firstFactor": body.firstFactor, "ldap": own.get("ldap"), "radius": own.get("radius")}

    def check(self, body: SetFirstFactor, before: Stored | None) -> None:
        if body.firstFactor in self._service.models and body.firstFactor.value not in _given(body):
            raise invalid_field(body.firstFactor.value, "is missing, because nothing was configured before")

    async def admit(self, body: SetFirstFactor, tenant_id: int, domain_id: int) -> None:
        for name, values in _given(body).items():
            self._service.refuse(domain_id, name, self._service.validated(name, values), tenant_id)

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[SetFirstFactor]]) -> None:
        for each in changes:
            domain = domains_repo.get(tx, each.domain_id)
            factor = each.body.firstFactor if each.body else FirstFactor.LOCAL
            given = _given(each.body) if each.body else {}
            own = {name: values for name, values in given.items() if name in each.fields}
            self._service.write(tx, domain, factor, own)
            self._changed[domain.id] = factor

    def verify(self, tx: Tx, tenant_id: int) -> None:
        for domain in domains_repo.load(tx).by_tenant.get(tenant_id, ()):
            if domain.first_factor is FirstFactor.WEB:
                self._service.check_web(tx, domain.id)

    def written(self) -> None:
        while self._changed:
            self._service.retire(*self._changed.popitem())


def _given(body: SetFirstFactor) -> dict[str, dict[str, object]]:
    return {name: cast(dict[str, object], as_text(values)) for name, values in body.given().items()}


def _compact(value: object) -> dict[str, object]:
    """Return an object without the members that are null or empty."""
    return {
        name: [_compact(one) if isinstance(one, dict) else one for one in each]
        if isinstance(each, list)
        else _compact(each)
        if isinstance(each, dict)
        else each
        for name, each in cast(dict[str, object], value).items()
        if each not in (None, "")
    }
