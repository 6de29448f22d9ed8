"""The tenants of the certificates that the installation's certificate authority has issued (`sallyport cert`).

A RadSec peer is recognized as a RADIUS client by the name or the fingerprint in its certificate. Therefore the
certificate decides which tenant receives the peer's logins. A name is issued for a tenant. The name belongs to this
tenant until all certificates with the name are revoked.

Two kinds of certificates belong to no tenant: certificates of other authorities, and certificates that were issued
before Sallyport recorded tenants.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sallyport.base.addresses import canonical_host
from sallyport.base.errors import Conflict
from sallyport.store.model import Tx

if TYPE_CHECKING:
    from sallyport.store.snapshot import Configuration


@dataclass(frozen=True, slots=True)
class _Row:
    fingerprint: str
    name: str
    tenant_id: int


@dataclass(frozen=True, slots=True)
class Issued:
    """The tenant ids of issued certificates.

    by_fingerprint: the key is the SHA-256 of the certificate, in hex. by_name: the key is the name in the certificate,
    in canonical form.
    """

    by_fingerprint: Mapping[str, int] = field(default_factory=dict)
    by_name: Mapping[str, int] = field(default_factory=dict)


def load(tx: Tx) -> Issued:
    """Return the tenant ids of all issued certificates."""
    rows = tx.all(_Row, "select fingerprint, name, tenant_id from issued_certificates")
    return Issued({row.fingerprint: row.tenant_id for row in rows}, {row.name: row.tenant_id for row in rows})


def tenant_of_name(tx: Tx, name: str) -> int | None:
    """Return the id of the tenant that a name was issued for, or None. name: a name in canonical form."""
    return tx.value(int, "select tenant_id from issued_certificates where name = :name limit 1", name=name)


def tenant_of_fingerprint(tx: Tx, fingerprint: str) -> int | None:
    """Return the id of the tenant that a certificate was issued for, or None. fingerprint: the SHA-256 of the
    certificate in hex."""
    return tx.value(int, "select tenant_id from issued_certificates where fingerprint = :value", value=fingerprint)


class IssuedCertificates:
    """The service that records issued certificates. A change takes effect with the next packet of a RadSec peer.

    configuration: stores a change, and then reloads the records in memory. issued: a function that returns the records
    in memory.
    """

    def __init__(self, configuration: "Configuration", issued: Callable[[], Issued]) -> None:
        self._configuration = configuration
        self._issued = issued

    @property
    def by_fingerprint(self) -> Mapping[str, int]:
        """The tenant ids of issued certificates. The key is the SHA-256 of the certificate, in hex."""
        return self._issued().by_fingerprint

    def tenant_of(self, name: str) -> int | None:
        """Return the id of the tenant that a name was issued for, or None."""
        return self._issued().by_name.get(canonical_host(name))

    async def check(self, name: str, tenant_id: int) -> None:
        """Raise Conflict if a certificate for this name must not be issued for the given tenant.

        The certificate must not be issued if the name was already issued for another tenant. Neither must it be issued
        if a client of another tenant has the name as its tlsName.
        """
        await self._configuration.store.read(lambda tx: _check(tx, canonical_host(name), tenant_id))

    async def record(self, name: str, fingerprint: str, tenant_id: int) -> None:
        """Store the tenant of a new certificate. Raises Conflict if the name belongs to another tenant."""

        def transaction(tx: Tx) -> None:
            form = canonical_host(name)
            _check(tx, form, tenant_id)
            tx.execute(
                "insert into issued_certificates (fingerprint, name, tenant_id) values (:fingerprint, :name, :tenant)",
                fingerprint=fingerprint,
                name=form,
                tenant=tenant_id,
            )

        await self._configuration.change(transaction)

    async def forget(self, fingerprints: Sequence[str]) -> None:
        """Remove revoked certificates. After the last certificate of a name is removed, the name may be issued for
        another tenant."""

        def transaction(tx: Tx) -> None:
            for each in fingerprints:
                tx.execute("delete from issued_certificates where fingerprint = :value", value=each)

        await self._configuration.change(transaction, urgent=True)


def _check(tx: Tx, name: str, tenant_id: int) -> None:
    sql = "select tenant_id from radius_clients where tls_name = :name and tls_name <> ''"  # as the index requires
    user = tx.value(int, sql, name=name)
    if {tenant_of_name(tx, name), user} - {None, tenant_id}:
        raise Conflict("the name belongs to another tenant: `cert show` and `client list` show the tenant")
