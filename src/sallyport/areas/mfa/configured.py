"""MFA providers in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, cast

from sallyport.areas.configured import Change, Kind, Stored, as_text
from sallyport.areas.mfa.bodies import WholeProvider
from sallyport.areas.mfa.host import Fields
from sallyport.areas.mfa.service import Providers
from sallyport.base.errors import Invalid
from sallyport.base.model import Unknown
from sallyport.outgoing.fields import revealed
from sallyport.store.model import Tx

_IN_FILES: Final = {"domain": "oktaDomain"}
"""Other names of fields of providers in files, where `domain` is the domain that the provider belongs to."""
_OF_PROVIDERS: Final = {in_files: name for name, in_files in _IN_FILES.items()}


class ProviderKind(Kind[WholeProvider]):
    """MFA providers."""

    name = "provider"
    body = WholeProvider
    key = "provider"
    refers = "domain"
    removed_first = False
    destinations = frozenset({"url", "host", "oktaDomain", "issuer"})
    listed_by = ("/ad/ListMFAProviders", "providers")
    shown_by = MappingProxyType({"/ad/GetMFAProvider": "provider"})
    changed_by = MappingProxyType(
        {"/ad/SetMFAProvider": "domainId", "/ad/AddMFAProvider": "provider", "/ad/DeleteMFAProvider": "provider"}
    )

    def __init__(self, service: Providers) -> None:
        self._service = service
        self._changed = set[int]()
        self.parts = tuple(service.models.values())

    def fields(self) -> list[str]:
        own = dict.fromkeys(_in_files(name) for model in self.parts for name in model.model_fields)
        return [*super().fields(), *own]

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain_id, domain in domains.items():
            for row, fields, beside in self._service.read(tx, domain_id):
                own = {_in_files(name): value for name, value in revealed(fields).items() if value not in (None, "")}
                head = {"domain": domain, "provider": row.provider, "timeoutSeconds": row.timeout_s}
                yield Stored(row.provider, {**head, "beside": beside, **own})

    def values(self, body: WholeProvider) -> dict[str, object]:
        fields = self._validated(body)
        own = {_in_files(name): getattr(fields, name) for name in type(fields).model_fields}
        return {"timeoutSeconds": body.timeoutSeconds, "beside": body.beside, **own}

    def _validated(self, body: WholeProvider) -> Fields:
        values = cast(Mapping[str, object], as_text(body.own_fields()))
        given = {_OF_PROVIDERS.get(name, name): value for name, value in values.items()}
        try:
            return self._service.validated(body.provider, given, Unknown.REFUSED)
        except Invalid as error:
            error.fields = tuple(replace(each, field=_in_files(each.field)) for each in error.fields)
            raise

    async def admit(self, body: WholeProvider, tenant_id: int, domain_id: int) -> None:
        await self._service.refuse(domain_id, body.provider, self._validated(body))

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[WholeProvider]]) -> None:
        for each in sorted(changes, key=_order):  # a provider that becomes the default one replaces the former one
            name = each.body.provider if each.body else str(each.before.id) if each.before else ""
            if each.body is None and not self._service.is_stored(tx, each.domain_id, name):
                continue  # another default provider has replaced it
            fields = self._validated(each.body) if each.body else None
            timeout_s = each.body.timeoutSeconds if each.body else 0
            beside = each.body is not None and each.body.beside
            self._changed.add(each.domain_id)
            self._service.write(tx, each.domain_id, name, fields, timeout_s, beside=beside)

    def verify(self, tx: Tx, tenant_id: int) -> None:
        for domain_id in self._changed:  # login rules are written after providers
            self._service.check_uses(tx, domain_id)

    def written(self) -> None:
        self._changed.clear()


def _in_files(name: str) -> str:
    return _IN_FILES.get(name, name)


def _order(change: Change[WholeProvider]) -> bool:
    return change.body is not None and change.body.beside
