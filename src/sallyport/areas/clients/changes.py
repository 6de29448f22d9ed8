"""The checks of a change of RADIUS clients, and its entry in the audit trail."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sallyport.areas.clients import issued, repo
from sallyport.base.addresses import Network
from sallyport.base.errors import Conflict, Forbidden
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Tx, Value
from sallyport.web.scope import Role

WIDEST: Final = {4: 24, 6: 64}
"""The shortest prefix that a tenant may register if the installation has several tenants."""
CERTIFICATE: Final = {"tls_name": issued.tenant_of_name, "tls_fingerprint": issued.tenant_of_fingerprint}


def check_ranges(tx: Tx, tenant_id: int, networks: Sequence[Network], by: Role | None) -> None:
    """Raise Forbidden or Conflict if one of the networks is not allowed for a client of the tenant.

    The messages reveal nothing about other tenants. Call the function in the transaction of the change, because two
    tenants may request the same network at the same time.
    """
    wide = any(network.prefixlen < WIDEST[network.version] for network in networks)
    if by is not None and wide and repo.has_others(tx, tenant_id):
        raise Forbidden(
            "the installation has several tenants: a network wider than /24 (IPv6: /64) is not allowed here; "
            "the installation's administrator adds wider networks with `sallyport client add`"
        )
    if repo.touch_others(tx, tenant_id, networks):
        raise Conflict("address is not available: choose another one, or ask the installation's administrator")


def check_certificate(tx: Tx, tenant_id: int, columns: Mapping[str, Value], by: Role | None) -> None:
    """Raise Forbidden or Conflict if a client of the tenant must not have the TLS name or fingerprint.

    The messages reveal nothing about other tenants.
    """
    for column, tenant_of in CERTIFICATE.items():
        value, field = str(columns.get(column, "")), repo.API_NAMES[column]
        owner = tenant_of(tx, value)
        if not value or owner == tenant_id:
            continue
        if by is not None and repo.has_others(tx, tenant_id):
            raise Forbidden(
                f"the installation has several tenants: {field} must belong to a certificate that the "
                "installation has issued for this tenant; its administrator adds others with `sallyport client add`"
            )
        if owner is not None:
            raise Conflict(f"{field} belongs to a certificate of another tenant: see `cert show`")


def record(
    tx: Tx,
    action: str,
    tenant_id: int,
    client_id: int,
    at: int,
    *,
    before: Mapping[str, JSON] = MappingProxyType({}),
    after: Mapping[str, JSON] = MappingProxyType({}),
) -> None:
    """Record a change of a client. before, after: the fields of the client, as `repo.described` returns them."""
    target = target_of(client_id, before.get("name") or after.get("name"))
    audit.record(tx, action, at=at, tenant_id=tenant_id, target=target, changes=audit.changed(before, after))


def target_of(client_id: int, name: JSON) -> str:
    """Return the text that names a client in the audit trail."""
    return f"client {client_id} {name}"
