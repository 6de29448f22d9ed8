"""Server certificates of domains in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pydantic import SecretStr

from sallyport.areas.certificates.bodies import SetServerCertificate
from sallyport.areas.certificates.certificate import checked_chain
from sallyport.areas.certificates.service import ServerCertificates, canonical
from sallyport.areas.configured import Change, Kind, Stored
from sallyport.areas.domains import repo as domains_repo
from sallyport.base.text import fold
from sallyport.store.model import Tx

CHAIN, KEY = "certificate", "privateKey"


class ServerCertificateKind(Kind[SetServerCertificate]):
    """Server certificates of domains and of their realms."""

    name = "server_certificate"
    body = SetServerCertificate
    key = "realm"
    refers = "domain"
    keeps = frozenset({KEY})
    texts = frozenset({CHAIN})
    has_text_secrets = True
    listed_by = ("/ad/ListServerCertificates", "certificates")
    changed_by = MappingProxyType({"/ad/SetServerCertificate": "realm", "/ad/RemoveServerCertificate": "realm"})

    def __init__(self, service: ServerCertificates) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for row, key in self._service.read(tx, domains):
            fields = {"domain": domains[row.domain_id], "realm": row.realm, CHAIN: row.chain}
            yield Stored(row.realm_key, {**fields, KEY: {"hex": key.encode().hex()}})

    def values(self, body: SetServerCertificate) -> dict[str, object]:
        chain, key = canonical(checked_chain(body.certificate), body.privateKey.get_secret_value())
        return {"realm": fold(body.realm), CHAIN: chain, KEY: SecretStr(key)}

    def check(self, body: SetServerCertificate, before: Stored | None) -> None:
        self._service.checked(body.certificate, body.privateKey.get_secret_value())

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[SetServerCertificate]]) -> None:
        for each in changes:
            if each.body is None:
                self._service.remove_in(tx, each.domain_id, str(each.before.id) if each.before else "")
                continue
            domain = domains_repo.get(tx, each.domain_id)
            new = self._service.checked(each.body.certificate, each.body.privateKey.get_secret_value())
            self._service.set_in(tx, domain, each.body.realm, new)
