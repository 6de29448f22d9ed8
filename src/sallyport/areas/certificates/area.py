"""The entrance of the server certificates of domains."""

from collections.abc import Sequence
from functools import partial

from sallyport.areas.certificates import operations as api
from sallyport.areas.certificates.configured import ServerCertificateKind
from sallyport.areas.certificates.service import ServerCertificates
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.store.erasure import Rows
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class ServerCertificatesArea(Area):
    """Server certificates of domains for EAP."""

    erased_rows = (Rows("server_certificates", "server certificates", "domain_id, realm_key"),)
    sealed = (Sealed("server_certificates", "private_key", ("domain_id", "realm_key"), "server_certificates/{}/{}"),)

    def __init__(self, parts: Parts, domains: Domains) -> None:
        self._domains = domains
        self.service = ServerCertificates(parts.configuration, parts.vault, parts.clock)
        self.configured = (ServerCertificateKind(self.service),)
        self.leader_tasks = (partial(self.service.watch, parts.leader_store),)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of server certificates."""
        return [api.operations(self.service, self._domains, gate)]
