"""The server certificates of all domains in memory, and their changes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

import structlog
import trio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.areas.certificates import repo
from sallyport.areas.certificates.certificate import (
    MAX_CERTIFICATES,
    WARN_DAYS,
    CertificateRow,
    DomainCertificate,
    check_key,
    checked_chain,
    days_left,
    identity,
    names_in,
)
from sallyport.areas.domains.domain import Domain
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import ConfigError, NotFound, SecretError, invalid_field
from sallyport.base.text import existing, fold
from sallyport.base.wire import JSON
from sallyport.certs.authority import fingerprint
from sallyport.certs.folder import present
from sallyport.certs.supplicants import warnings
from sallyport.nodes.periodic import every
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.pem import key_pem
from sallyport.radius.eap.server import TlsConfiguration, TlsServer
from sallyport.radius.eap.server_certificate import ServerCertificate
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault

NOT_FOUND: Final = "the domain has no server certificate for this realm"
HOUR_S: Final = 3600
_Place = tuple[int, str, int, int]
"""The domain, the realm, the time of the change, and the hour, because a certificate expires."""
ByRealm = Mapping[str, ServerCertificate]
"""The usable certificates of a domain, by case-folded realm. The key of that for the whole domain is empty."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CertificateTable:
    """The certificates of all domains. usable: those that conversations can use, by the id of the domain; domains
    without one are absent."""

    rows: Mapping[tuple[int, str], DomainCertificate] = field(default_factory=dict)
    usable: Mapping[int, ByRealm] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedCertificate:
    """A certificate that may be set. chain, key: in PEM."""

    chain: str
    key: str = field(repr=False)
    certificate: ServerCertificate


class ServerCertificates:
    """The server certificates of all domains. A change applies to conversations that begin after its call has returned.
    Pending conversations end with the certificate with which they began."""

    def __init__(self, configuration: Configuration, vault: Vault, clock: Clock) -> None:
        self._configuration = configuration
        self._vault = vault
        self._clock = clock
        self._table = configuration.hold(self._load, CertificateTable(), self._adopt)
        self._on_replaced: list[Callable[[Sequence[ServerCertificate]], None]] = []
        self._told: Mapping[CertificateRow, int] = {}
        self._warnings = BoundedMap[_Place, Sequence[str]](10 * MAX_CERTIFICATES)

    def on_replaced(self, forget: Callable[[Sequence[ServerCertificate]], None]) -> None:
        """Register a function that drops what was made with certificates that were replaced or removed."""
        self._on_replaced.append(forget)

    def usable(self, domain_id: int) -> ByRealm | None:
        """Return the certificates of a domain for EAP conversations, or None if the domain has none."""
        return self._table.value.usable.get(domain_id)

    def of(self, domain_id: int) -> list[DomainCertificate]:
        """Return the certificates of a domain, ordered by realm."""
        return [each for (owner, _), each in self._table.value.rows.items() if owner == domain_id]

    def present(self, domain_id: int, realm: str) -> DomainCertificate:
        """Return the certificate of a domain for a realm. Raises NotFound."""
        found = self._table.value.rows.get((domain_id, fold(realm)))
        if found is None:
            raise NotFound(NOT_FOUND)
        return found

    def now(self) -> datetime:
        """Return the time in whole seconds."""
        return present(self._clock)

    async def warnings(self, found: Sequence[DomainCertificate]) -> list[Sequence[str]]:
        """Return what supplicants refuse about each of some certificates. It is kept for an hour, because the home page
        and `doctor` ask for all certificates, and each takes a millisecond or more."""
        now = self.now()
        hour = int(now.timestamp()) // HOUR_S
        row_keys = [(each.row.domain_id, each.row.realm_key, each.row.changed_at, hour) for each in found]
        told = {row_key: known for row_key in row_keys if (known := self._warnings.get(row_key)) is not None}
        chains = {row_key: each.chain for row_key, each in zip(row_keys, found, strict=True) if row_key not in told}
        if chains:
            new = await trio.to_thread.run_sync(lambda: {each: warnings(chain, now) for each, chain in chains.items()})
            for row_key, texts in new.items():
                self._warnings.put(row_key, texts, row_key[0])
            told |= new
        return [told[row_key] for row_key in row_keys]

    def pem_texts(self) -> Iterator[tuple[int, str, str]]:
        """Yield (id of the domain, realm, chain in PEM) for each certificate."""
        for each in tuple(self._table.value.rows.values()):
            yield each.row.domain_id, each.row.realm, each.row.chain

    async def set(self, domain: Domain, realm: str, chain: str, key: str) -> DomainCertificate:
        """Set the certificate of a domain, or of one of its realms. Raises Invalid about the wrong field. Raises
        Conflict if the tenant would have too many certificates.

        realm: empty for the whole domain. chain: the server's certificate in PEM, followed by the intermediate
        certificates. key: the private key in PEM.
        """
        await trio.to_thread.run_sync(_realm_key, domain, realm)
        new = await trio.to_thread.run_sync(self.checked, chain, key)
        row = await self._configuration.change(lambda tx: self.set_in(tx, domain, realm, new))
        return DomainCertificate(row, new.certificate.chain, new.certificate)

    def set_in(self, tx: Tx, domain: Domain, realm: str, new: CheckedCertificate) -> CertificateRow:
        """Set a certificate in a transaction of the configuration, and return its row. Raises Invalid, Conflict."""
        realm_key, at = _realm_key(domain, realm), self._clock()
        before = repo.find(tx, domain.id, realm_key)
        later = at if before is None else max(at, before.changed_at + 1)
        sealed = self._vault.seal(new.key.encode(), identity(domain.id, realm_key))
        row = CertificateRow(domain.id, realm_key, realm, new.chain, sealed, later)
        repo.put(tx, row)
        known: Mapping[str, JSON] = {} if before is None else _as_json(_chain(before.chain))
        self._record(tx, "server_certificate.set", row, known, _as_json(new.certificate.chain))
        return row

    async def remove(self, domain_id: int, realm: str) -> None:
        """Remove the certificate of a domain for a realm. Raises NotFound."""
        realm_key = await trio.to_thread.run_sync(fold, realm)
        await self._configuration.change(lambda tx: self.remove_in(tx, domain_id, realm_key))

    def remove_in(self, tx: Tx, domain_id: int, realm_key: str) -> None:
        """Remove a certificate in a transaction of the configuration. Raises NotFound."""
        row = repo.find(tx, domain_id, realm_key)
        if row is None:
            raise NotFound(NOT_FOUND)
        repo.delete(tx, row)
        self._record(tx, "server_certificate.remove", row, _as_json(_chain(row.chain)), {})

    def read(self, tx: Tx, domain_ids: Collection[int]) -> list[tuple[CertificateRow, str]]:
        """Return the rows of domains, each with its private key in PEM. Raises SecretError."""
        own = [row for row in repo.load(tx) if row.domain_id in domain_ids]
        return [(row, self._vault.open(row.private_key, row.identity).decode()) for row in own]

    def checked(self, chain: str, key: str) -> CheckedCertificate:
        """Return a checked certificate. Raises Invalid about the field `certificate` or `privateKey`."""
        checked = checked_chain(chain)
        check_key(checked[0])
        chain, key = canonical(checked, key)
        try:
            certificate = _parsed(chain, key)
        except ConfigError:
            wanted = "must be the key of the first certificate in `certificate`; put the server's certificate first"
            raise invalid_field("privateKey", wanted) from None
        ends = certificate.chain[0].not_valid_after_utc
        if ends.timestamp() * SECOND <= self._clock():
            raise invalid_field("certificate", f"must be valid; this certificate expired at {ends:%Y-%m-%d}")
        try:
            TlsServer(TlsConfiguration(certificate))
        except ConfigError as error:
            raise invalid_field("certificate", str(error)) from None
        return CheckedCertificate(chain, key, certificate)

    async def watch(self, store: Store) -> None:
        """Tell every hour which certificates expire soon, until cancelled."""
        await every(HOUR_S, partial(self.tell_expiries, store), failure="server_certificate_expiry_not_recorded")

    async def tell_expiries(self, store: Store) -> None:
        """Write the certificates that expire soon to the audit trail of their tenant and to the log, once for each
        number of WARN_DAYS. store: the store of the node with the lease. Raises StoreError."""
        rows, now = tuple(self._table.value.rows.values()), self._clock()
        due = await trio.to_thread.run_sync(_due, rows, now)
        untold = [each for each in due if self._told.get(each.row) != each.days]

        def transaction(tx: Tx) -> list[_Due]:
            new = [each for each in untold if repo.tell(tx, each.row, each.days)]
            for each in new:
                audit.record_in(
                    tx,
                    "server_certificate.expire",
                    each.row.domain_id,
                    _target(each.row),
                    {"daysLeft": [None, each.left]},
                    at=now,
                )
            return new

        for each in await store.write(transaction) if untold else ():
            log.warning("server_certificate_expires", domain=each.row.domain_id, realm=each.row.realm, days=each.left)
        self._told = {each.row: each.days for each in due}

    def _adopt(self, table: CertificateTable) -> None:
        before = self._table.value.rows
        replaced = [
            each.certificate
            for row_key, each in before.items()
            if each.certificate is not None and each is not table.rows.get(row_key)
        ]
        for forget in self._on_replaced if replaced else ():
            forget(replaced)

    def _load(self, tx: Tx) -> CertificateTable:
        known, rows, usable = self._table.value.rows, dict[tuple[int, str], DomainCertificate](), dict[int, ByRealm]()
        for row_key, row in self._rows(tx, known):
            found = rows[row_key] = known[row_key] if row is None else self._opened(row)
            if found.certificate is not None:
                usable[row_key[0]] = {**usable.get(row_key[0], {}), row_key[1]: found.certificate}
        return CertificateTable(rows, usable)

    def _rows(
        self, tx: Tx, known: Mapping[tuple[int, str], DomainCertificate]
    ) -> Iterator[tuple[tuple[int, str], CertificateRow | None]]:
        """Yield each certificate's domain and realm with its row, or with None if the known row is unchanged. This
        runs after each change of the configuration, so it reads only the rows that have changed."""
        if self._configuration.is_outdated:
            for row in repo.load(tx):
                row_key = (row.domain_id, row.realm_key)
                yield row_key, None if row_key in known and known[row_key].row == row else row
            return
        for row_key, at in repo.changes(tx).items():
            is_known = row_key in known and known[row_key].row.changed_at == at
            yield row_key, None if is_known else repo.find(tx, *row_key)

    def _opened(self, row: CertificateRow) -> DomainCertificate:
        try:
            certificate = _parsed(row.chain, self._vault.open(row.private_key, row.identity).decode())
        except (SecretError, ConfigError, ValueError) as error:
            log.error(  # noqa: TRY400  a traceback may show the key
                "server_certificate_unreadable", domain=row.domain_id, realm=row.realm, error=type(error).__name__
            )
            return DomainCertificate(row, _chain(row.chain), None)
        return DomainCertificate(row, certificate.chain, certificate)

    def _record(
        self, tx: Tx, action: str, row: CertificateRow, before: Mapping[str, JSON], after: Mapping[str, JSON]
    ) -> None:
        audit.record_in(tx, action, row.domain_id, _target(row), audit.changed(before, after), at=self._clock())


@dataclass(frozen=True, slots=True)
class _Due:
    """A certificate that expires soon. days: the number of WARN_DAYS. left: the days until the expiry."""

    row: CertificateRow
    days: int
    left: int


def _due(found: Sequence[DomainCertificate], now: int) -> list[_Due]:
    due = list[_Due]()
    for each in found:
        left = days_left(each, now)
        days = None if left is None else next((days for days in WARN_DAYS if left <= days), None)
        if left is not None and days is not None:
            due.append(_Due(each.row, days, left))
    return due


def _target(row: CertificateRow) -> str:
    return f"server certificate of {f'realm {row.realm}' if row.realm else 'the domain'}"


def canonical(chain: Sequence[x509.Certificate], key: str) -> tuple[str, str]:
    """Return a chain and its private key in PEM, without text around them. Raises Invalid about the field
    `privateKey`."""
    try:
        key = key_pem(key)
    except PemError as error:
        raise invalid_field("privateKey", str(error)) from None
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in chain), key


def _realm_key(domain: Domain, realm: str) -> str:
    """Return the case-folded form of a realm of a domain. Raises Invalid about the field `realm`."""
    key = fold(realm)
    if key and key not in domain.realm_keys:
        names = existing(realm, (domain.name, *domain.realms))
        raise invalid_field("realm", f"must be the name or a realm of the domain, or empty{names}")
    return key


def _parsed(chain: str, key: str) -> ServerCertificate:
    return ServerCertificate.parse(chain.encode(), key.encode(), chain_name="certificate", key_name="privateKey")


def _chain(pem: str) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem.encode()))


def _as_json(chain: Sequence[x509.Certificate]) -> dict[str, JSON]:
    own = chain[0]
    return {
        "sha256": fingerprint(own),
        "hostNames": list[JSON](names_in(own)),
        "expires": f"{own.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}",
        "certificates": len(chain),
        "privateKey": audit.HIDDEN,
    }
