"""HTTP operations of server certificates: /ad/...ServerCertificate(s)."""

from collections.abc import Container, Sequence
from datetime import datetime

import trio
from cryptography import x509

from sallyport.areas.certificates.bodies import (
    CheckServerCertificate,
    ListServerCertificates,
    RemoveServerCertificate,
    ServerCertificateChecked,
    ServerCertificateList,
    ServerCertificateSet,
    SetServerCertificate,
)
from sallyport.areas.certificates.certificate import DomainCertificate, checked_chain, entry
from sallyport.areas.certificates.service import ServerCertificates
from sallyport.areas.domains.service import Domains
from sallyport.base.answer import answers
from sallyport.base.model import Done
from sallyport.base.wire import Row
from sallyport.certs.supplicants import remarks
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: ServerCertificates, domains: Domains, gate: Gate) -> Operations:
    """Declare the operations. Only an admin may change certificates, because devices trust them."""
    certificates = Operations("Domains", gate)

    @certificates.post("/ad/ListServerCertificates", roles=READERS)
    async def list_server_certificates(body: ListServerCertificates, caller: Caller) -> Plain[ServerCertificateList]:
        """Return the server certificates of a domain for EAP, without their keys. They are at most one for the domain
        and one for each of its realms."""
        found = service.of(body.domainId)
        told = await service.warnings(found)
        keys = domains.table.present(body.domainId).realm_keys
        return Plain({"certificates": await trio.to_thread.run_sync(_entries, found, told, keys) if found else []})

    @certificates.post("/ad/SetServerCertificate", roles=ADMINS)
    async def set_server_certificate(body: SetServerCertificate, caller: Caller) -> ServerCertificateSet:
        """Set the certificate that the service shows to supplicants of a domain, or of one of its realms.

        It replaces the previous certificate for the same realm, without a restart, on all nodes. Pending conversations
        end with the previous one. The outer identity selects the certificate, because EAP has no server name: first
        that of its realm, then that of the domain, then that of the installation. 400: the key does not belong to the
        certificate, the certificate has expired, or TLS cannot use it.
        """
        domain = domains.table.present(body.domainId)
        found = await service.set(domain, body.realm, body.certificate, body.privateKey.get_secret_value())
        (told,) = await service.warnings([found])
        return ServerCertificateSet(message="server certificate set", warnings=list(told))

    @certificates.post("/ad/RemoveServerCertificate", roles=ADMINS)
    async def remove_server_certificate(body: RemoveServerCertificate, caller: Caller) -> Done:
        """Remove the server certificate of a domain, or of one of its realms. The next conversation gets the
        certificate of the domain, or that of the installation."""
        await service.remove(body.domainId, body.realm)
        return Done(message="server certificate removed")

    @certificates.post("/ad/CheckServerCertificate", roles=READERS)
    async def check_server_certificate(body: CheckServerCertificate, caller: Caller) -> Plain[ServerCertificateChecked]:
        """Return what each kind of supplicant says about a server certificate: its chain, names, purposes, dates, key
        and hash, and the number of EAP packets of the chain. The certificate is that of the domain, or one that is not
        set yet. Nothing is changed, and nothing is sent."""
        found = None if body.certificate else service.present(body.domainId, body.realm).chain
        return Plain(
            {
                "remarks": await trio.to_thread.run_sync(
                    _remarks, found, body.certificate, body.serverName, service.now()
                )
            }
        )

    return certificates


def _entries(
    found: Sequence[DomainCertificate], told: Sequence[Sequence[str]], realm_keys: Container[str]
) -> list[Row]:
    return answers(
        [entry(each, [*warnings, *_unreachable(each, realm_keys)]) for each, warnings in zip(found, told, strict=True)]
    )


def _unreachable(found: DomainCertificate, realm_keys: Container[str]) -> list[str]:
    row = found.row
    is_reached = not row.realm_key or row.realm_key in realm_keys
    return [] if is_reached else [f"no login gets it: {row.realm} is no longer a realm of the domain; remove it"]


def _remarks(chain: Sequence[x509.Certificate] | None, pem: str, server_name: str, now: datetime) -> list[Row]:
    return [
        {"supplicant": each.supplicant.value, "verdict": each.verdict.value, "text": each.text}
        for each in remarks(chain or checked_chain(pem), now, server_name)
    ]
