"""Local operations of certificates: cert.init, cert.issue, cert.list, cert.owners, cert.renew and cert.revoke.

An operation first writes the files, then records the tenant, then writes the audit trail. If the store fails, the
operation fails, but the certificate exists. It belongs to no tenant until `cert renew` records its tenant.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

import trio
from cryptography import x509
from pydantic import Field

from sallyport.base.clock import Clock
from sallyport.base.errors import Invalid, StartError
from sallyport.base.wire import JSON, Row
from sallyport.certs.authority import KeyKind, common_name, fingerprint
from sallyport.certs.folder import CertificateFolder, present, read_certificates
from sallyport.shell.command import Arguments, LocalOperations, Tenants

T = TypeVar("T")
Note: TypeAlias = Callable[[str, str, Mapping[str, JSON]], Awaitable[None]]
"""A function that writes an action, its target and its changes to the audit trail."""
Gone: TypeAlias = Callable[[Sequence[tuple[str, int | None]]], Awaitable[None]]
"""A function that ends the sessions of clients. Its argument has the name and the tenant of each certificate. If the
tenant is None, it ends the sessions in all tenants."""
Numbers: TypeAlias = Mapping[int, tuple[int, int]]
"""The orgId and the tenantId of each tenant, by the internal id of the tenant."""


class Owners(Protocol):
    """The records of issued certificates and their tenants."""

    @property
    def by_fingerprint(self) -> Mapping[str, int]:
        """The internal ids of tenants, by certificate. The key is the SHA-256 fingerprint of the certificate in hex.
        The value is the id of the certificate's tenant."""

    def tenant_of(self, name: str) -> int | None:
        """Return the internal id of the tenant for which certificates with a name were issued, or None."""

    async def check(self, name: str, tenant_id: int) -> None:
        """Raise Conflict if the name belongs to another tenant."""

    async def record(self, name: str, fingerprint: str, tenant_id: int) -> None:
        """Store the tenant of a certificate. Raises Conflict if the name belongs to another tenant."""

    async def forget(self, fingerprints: Sequence[str]) -> None:
        """Remove the records of revoked certificates."""


class Files(Protocol):
    """The files of the certificates. folder: the folder with the files on this machine."""

    @property
    def folder(self) -> CertificateFolder:
        """The folder, for reading."""

    async def change(self, work: Callable[[CertificateFolder], T]) -> T:
        """Run `work`, which changes the folder, in a thread. When this call returns, the change is stored."""


class NewAuthority(Arguments):
    """Arguments of cert.init. hosts: the host names and addresses of the server. key_type, send_root: as in
    `CertificateFolder.make`."""

    ca_name: str
    hosts: list[str]
    key_type: KeyKind = KeyKind.P256
    send_root: bool = False


class _MayNameTenant(Arguments):
    """Arguments that may name a tenant.

    org: the orgId. tenant: the tenantId. Either both are given, or neither is given.
    """

    org: int | None = Field(default=None, ge=1)
    tenant: int | None = Field(default=None, ge=1)


class OfClient(_MayNameTenant):
    """Arguments of cert.issue. name: the name of a user, a machine or a RADIUS server."""

    name: str


class Renewed(_MayNameTenant):
    """Arguments of cert.renew.

    name: the client's name, or None for the server's certificate. hosts: the new host names of the server. new_key,
    send_root: for the server's certificate, as in `CertificateFolder.renew`.
    """

    name: str | None = None
    hosts: list[str] = Field(default_factory=list)
    new_key: KeyKind | None = None
    send_root: bool | None = None


class Revoked(Arguments):
    """Arguments of cert.revoke. wanted: the name of a client, or the serial number of one certificate in hex."""

    wanted: str


def local_operations(
    files: Files,
    owners: Owners,
    tenants: Tenants,
    note: Note,
    gone: Gone,
    clock: Clock,
    used: Callable[[], Mapping[str, Path]] = dict,
) -> LocalOperations:
    """Return the local operations of certificates. used: returns the certificate files that the settings name, by the
    name of the setting."""
    local = LocalOperations()
    folder, now = files.folder, partial(present, clock)

    async def noted(
        action: str, certificates: Sequence[x509.Certificate], tenant: tuple[int, int] | None = None
    ) -> list[JSON]:
        shown = [_shown(each) for each in certificates]
        for each in shown:
            changes = {} if action == "revoke" else {"expires": list[JSON]([None, each["expires"]])}
            if tenant is not None:
                changes |= {"orgId": [None, tenant[0]], "tenantId": [None, tenant[1]]}
            await note(f"certificate.{action}", f"certificate {each['serial']} {each['name']}", changes)
        return list(shown)

    async def chosen(wanted: OfClient | Renewed, numbers: Numbers, recorded: int | None) -> int | None:
        """Return the tenant for a certificate, or None if the tenant is not known. Raises NotFound, Invalid.

        The tenant in the arguments comes first, then the recorded tenant. Without both, the tenant is the only tenant
        of the installation, if there is exactly one.
        """
        if (wanted.org is None) != (wanted.tenant is None):
            raise Invalid("org and tenant go together: give both or neither")
        if wanted.org is None or wanted.tenant is None:
            return next(iter(numbers)) if recorded is None and len(numbers) == 1 else recorded
        return await tenants.tenant_id(wanted.org, wanted.tenant)

    async def signed(
        action: str, name: str, tenant_id: int, numbers: Numbers, sign: Callable[[CertificateFolder], x509.Certificate]
    ) -> x509.Certificate:
        """Issue a client's certificate and record its tenant. Raises Conflict if the name belongs to another tenant."""
        await owners.check(name, tenant_id)
        made = await files.change(sign)
        await owners.record(name, fingerprint(made), tenant_id)
        await noted(action, [made], numbers[tenant_id])
        return made

    @local("cert.init")
    async def init(wanted: NewAuthority) -> JSON:
        await files.change(
            lambda folder: folder.make(wanted.ca_name, wanted.hosts, now(), wanted.key_type, with_root=wanted.send_root)
        )
        made = [read_certificates(path)[0] for path in (folder.ca, folder.server)]
        await noted("issue", made)
        return str(folder.ca)

    @local("cert.issue")
    async def issue(wanted: OfClient) -> JSON:
        numbers = await tenants.numbers()
        tenant_id = await chosen(wanted, numbers, None)
        if tenant_id is None:
            raise Invalid("there are several tenants: give the certificate's tenant with --org and --tenant")
        made = await signed("issue", wanted.name, tenant_id, numbers, lambda folder: folder.issue(wanted.name, now()))
        return {**_shown(made), "path": str(folder.client(wanted.name))}

    @local("cert.renew")
    async def renew(wanted: Renewed) -> JSON:
        """Renew a certificate. The new certificate has the same tenant. If the old certificate has no tenant, the new
        certificate gets the tenant in the arguments."""
        numbers, name = await tenants.numbers(), wanted.name

        def sign(folder: CertificateFolder) -> x509.Certificate:
            return folder.renew(name, wanted.hosts, now(), wanted.new_key, with_root=wanted.send_root)

        tenant_id = None if name is None else await chosen(wanted, numbers, owners.tenant_of(name))
        if name is None or tenant_id is None:
            made = await files.change(sign)
            await noted("renew", [made])
        else:
            made = await signed("renew", name, tenant_id, numbers, sign)
        return {**_shown(made), "path": str(folder.server if name is None else folder.client(name))}

    @local("cert.owners")
    async def listing() -> JSON:
        numbers = await tenants.numbers()
        return [
            {"sha256": sha256, "org": numbers[tenant_id][0], "tenant": numbers[tenant_id][1]}
            for sha256, tenant_id in owners.by_fingerprint.items()
        ]

    @local("cert.revoke")
    async def revoke(wanted: Revoked) -> JSON:
        found = await files.change(lambda folder: folder.revoke(wanted.wanted, now()))
        names = [(common_name(each), owners.by_fingerprint.get(fingerprint(each))) for each in found]
        await owners.forget([fingerprint(each) for each in found])
        told = await noted("revoke", found)
        await gone(names)
        return told

    @local("cert.list")
    async def list_everything() -> JSON:
        return await _everything(folder, owners, tenants, used(), now())

    return local


async def _everything(
    folder: CertificateFolder, owners: Owners, tenants: Tenants, used: Mapping[str, Path], now: datetime
) -> JSON:
    """Return all certificates: those that the settings name, the authority's certificate, and every certificate that
    the authority has issued."""
    numbers = await tenants.numbers()

    def read() -> list[Row]:
        rows = [row for setting, path in used.items() for row in _of_file(setting, path, now)]
        if not folder.ca.exists():
            return rows
        rows += _of_file("authority", folder.ca, now)
        return rows + [_row(each.certificate, each.kind, each.state(now), now) for each in folder.issued()]

    found = list[JSON]()
    for row in await trio.to_thread.run_sync(read):
        tenant_id = owners.by_fingerprint.get(str(row["sha256"]))
        organization, tenant = (None, None) if tenant_id is None else numbers[tenant_id]
        found.append({**row, "org": organization, "tenant": tenant})
    return found


def _of_file(use: str, path: Path, now: datetime) -> Iterator[Row]:
    """Yield each certificate in a file as a row. use: the purpose of the file. If the file cannot be read, yield one
    row. The state in this row is the reason."""
    try:
        certificates = read_certificates(path)
    except StartError as error:
        yield {
            "name": str(path),
            "use": use,
            "state": str(error),
            "serial": "",
            "sha256": "",
            "expires": None,
            "days": None,
        }
        return
    for each in certificates:
        state = "expired" if each.not_valid_after_utc <= now else "valid"
        yield _row(each, use, state, now)


def _row(certificate: x509.Certificate, use: str, state: str, now: datetime) -> Row:
    ends = certificate.not_valid_after_utc
    shown: Row = {**_shown(certificate), "use": use, "state": state, "days": (ends - now).days}
    return {**shown, "expires": f"{ends:%Y-%m-%dT%H:%M:%SZ}"}


def _shown(certificate: x509.Certificate) -> Row:
    return {
        "name": common_name(certificate),
        "serial": f"{certificate.serial_number:x}",
        "sha256": fingerprint(certificate),
        "expires": f"{certificate.not_valid_after_utc:%Y-%m-%d}",
    }
