"""Authorities of client certificates in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sallyport.areas.authorities import repo
from sallyport.areas.authorities.authority import Authority, AuthorityTable
from sallyport.areas.authorities.bodies import AddAuthority
from sallyport.areas.authorities.bundle import FIELD, read_bundle
from sallyport.areas.authorities.operations import values_of
from sallyport.areas.authorities.service import Authorities
from sallyport.areas.configured import Change, Kind, Stored
from sallyport.base.answer import answer
from sallyport.store.model import Tx


class AuthorityKind(Kind[AddAuthority]):
    """Authorities of client certificates."""

    name = "authority"
    body = AddAuthority
    refers = "domains"
    is_ordered = False
    texts = frozenset({FIELD})
    names = "select id, tenant_id as owner, name from authorities"
    listed_by = ("/ad/ListAuthorities", "authorities")
    shown_by = MappingProxyType({"/ad/GetAuthority": "authorityId"})
    changed_by = MappingProxyType({"/ad/UpdateAuthority": "authorityId", "/ad/DeleteAuthority": "authorityId"})

    def __init__(self, service: Authorities) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for each in repo.load(tx, AuthorityTable()).by_tenant.get(tenant_id, ()):
            shown = answer(each, detail=True, warnings={})
            fields: dict[str, object] = {name: shown[name] for name in self.fields()}
            yield Stored(each.id, {**fields, "domains": [domains[number] for number in each.domain_ids]})

    def values(self, body: AddAuthority) -> dict[str, object]:
        return {**super().values(body), FIELD: read_bundle(body.certificates)[0]}

    async def release(self, changes: Sequence[Change[AddAuthority]]) -> None:
        for each in changes:
            if each.before and each.body is None:
                await self._service.release(int(each.before.id))

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[AddAuthority]]) -> None:
        for each in changes:
            if each.body is None:
                self._service.delete_in(tx, tenant_id, int(each.before.id) if each.before else 0)
                continue
            pem, anchors = read_bundle(each.body.certificates)
            fields = {**values_of(each.body), "certificates": pem, "anchors": anchors, "domain_ids": each.domains}
            if each.before:
                self._service.update_in(tx, tenant_id, int(each.before.id), fields)
            else:
                new = Authority(0, tenant_id, each.body.name, pem, anchors)
                self._service.add_in(tx, replace(new, **fields))  # type: ignore[arg-type]
