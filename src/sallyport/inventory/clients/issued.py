"""The tenant of each certificate that the installation's authority has issued (`sallyport cert`).

A RadSec peer is identified as a RADIUS client by the name or the fingerprint of its certificate. Therefore the name and
the fingerprint decide which tenant receives the peer's logins. A name belongs to the tenant that it was issued for,
until all certificates with this name are revoked. Certificates of other authorities belong to no tenant. Neither do
certificates that were issued before tenants were recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sallyport.base.addresses import canonical_host
from sallyport.base.errors import Conflict
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration


@dataclass(frozen=True, slots=True)
class _Row:
    fingerprint: str
    name: str
    tenant_id: int


@dataclass(frozen=True, slots=True)
class Issued:
    """The tenant ids of issued certificates. The keys are the SHA-256 of the certificate in hex, and the name in
    canonical form."""

    by_fingerprint: Mapping[str, int] = field(default_factory=dict)
    by_name: Mapping[str, int] = field(default_factory=dict)


def load(tx: Tx) -> Issued:
    """Return the certificates of all tenants."""
    rows = tx.all(_Row, "select fingerprint, name, tenant_id from issued_certificates")
    return Issued({row.fingerprint: row.tenant_id for row in rows}, {row.name: row.tenant_id for row in rows})


def tenant_of_name(tx: Tx, name: str) -> int | None:
    """Return the id of the tenant that a name was issued for. name: in canonical form."""
    return tx.value(int, "select tenant_id from issued_certificates where name = :name limit 1", name=name)


def tenant_of_fingerprint(tx: Tx, fingerprint: str) -> int | None:
    """Return the id of the tenant that a certificate was issued for. fingerprint: SHA-256 in hex."""
    return tx.value(int, "select tenant_id from issued_certificates where fingerprint = :value", value=fingerprint)


class IssuedCertificates:
    """Records of issued certificates. A change applies to the next packet of a RadSec peer.

    issued: a function that returns the records in memory; `configuration` reloads them.
    """

    def __init__(self, configuration: Configuration, issued: Callable[[], Issued]) -> None:
        self._configuration = configuration
        self._issued = issued

    @property
    def by_fingerprint(self) -> Mapping[str, int]:
        """The tenant ids of issued certificates by SHA-256 in hex."""
        return self._issued().by_fingerprint

    def tenant_of(self, name: str) -> int | None:
        """Return the id of the tenant that a name was issued for."""
        return self._issued().by_name.get(canonical_host(name))

    async def check(self, name: str, tenant_id: int) -> None:
        """Raise Conflict if the name belongs to another tenant, or if it is the tlsName of another tenant's client."""
        await self._configuration.store.read(lambda tx: _check(tx, canonical_host(name), tenant_id))

    async def record(self, name: str, fingerprint: str, tenant_id: int) -> None:
        """Store the tenant of a certificate. Conflict: the name belongs to another tenant."""

        def work(tx: Tx) -> None:
            form = canonical_host(name)
            _check(tx, form, tenant_id)
            tx.execute(
                "insert into issued_certificates (fingerprint, name, tenant_id) values (:fingerprint, :name, :tenant)",
                fingerprint=fingerprint,
                name=form,
                tenant=tenant_id,
            )

        await self._configuration.change(work)

    async def forget(self, fingerprints: Sequence[str]) -> None:
        """Remove revoked certificates. If no certificate with a name remains, the name may be issued for another
        tenant."""

        def work(tx: Tx) -> None:
            for each in fingerprints:
                tx.execute("delete from issued_certificates where fingerprint = :value", value=each)

        await self._configuration.change(work)


def _check(tx: Tx, name: str, tenant_id: int) -> None:
    user = tx.value(int, "select tenant_id from radius_clients where tls_name = :name", name=name)
    if {tenant_of_name(tx, name), user} - {None, tenant_id}:
        raise Conflict("the name belongs to another tenant: `cert show` and `client list` show which one")
