"""Find the domain, the user and the network of a request, and the user's groups."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sallyport.areas.clients.client import Client
from sallyport.areas.directory.principals import NOBODY, UNCLEAR, Membership, membership
from sallyport.areas.domains.domain import Domain, DomainTable, FirstFactor
from sallyport.areas.login.login import NO_NETWORK, PASSED, Login, Network, Reason
from sallyport.areas.policy.rules.facts import AccountKind, kind_of
from sallyport.areas.users.repo import active_groups
from sallyport.areas.users.user import name_key
from sallyport.base.text import fold
from sallyport.radius.attributes import CALLED_STATION_ID, NAS_PORT_ID, NAS_PORT_TYPE, USER_NAME, VENDOR_SPECIFIC
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.packet import Request, as_name, as_text
from sallyport.radius.password import Method
from sallyport.radius.vendors.ssid import ssid, ssid_of_called_station
from sallyport.store.model import Tx

BY_ADDRESS: Final = "mac"
"""The value of `Login.factor` for logins by MAC authentication bypass."""
BY_UNKNOWN_ADDRESS: Final = "unknown mac"
"""The same for stations that are not on the list of their domain."""
_NAMELESS: Final = frozenset({"@", "\\"})
"""Outer identities without user and realm. They belong to the default domain, like an empty one."""


def default_domain(client: Client, domains: DomainTable) -> Domain | None:
    """Return the domain of the devices behind a RADIUS client. User names without a realm belong to this domain.

    It is the client's first domain. For a client without domains, it is the first domain of the client's tenant.
    """
    if client.domain_ids:
        return domains.by_id.get(client.domain_ids[0])
    own = domains.by_tenant.get(client.tenant_id)
    return own[0] if own else None


def network_of(request: Request) -> Network:
    """Return the SSID and the port that a request names."""
    first = request.first
    if VENDOR_SPECIFIC in first:
        return Network(ssid(request), request.text(NAS_PORT_ID))
    return _network(first.get(CALLED_STATION_ID), first.get(NAS_PORT_TYPE), first.get(NAS_PORT_ID))


@lru_cache(4096)
def _network(called: bytes | None, port_type: bytes | None, port: bytes | None) -> Network:
    name = ssid_of_called_station(called, port_type)
    return Network(name, as_text(port or b"")) if name or port else NO_NETWORK


def split_realm(name: str) -> tuple[str, str]:
    r"""Split a User-Name into (user, realm). The forms are `REALM\user` and `user@realm`. If there are several @, the
    realm begins after the last one. A name in another form has an empty realm."""
    realm = ""
    if "\\" in name:
        realm, _, name = name.partition("\\")
    elif "@" in name:
        name, _, realm = name.rpartition("@")
    return name, realm


def qualified(user: str, domain: Domain) -> Sequence[str]:
    r"""Return all names of a user that contain a realm, such as `user@realm` and `REALM\user`. A device may send such a
    name in any domain of the tenant."""
    realms = (domain.name, *domain.realms)
    return [*(f"{user}@{realm}" for realm in realms), *(f"{realm}\\{user}" for realm in realms)]


def identify(login: Login, domains: DomainTable) -> Reason:
    """Find the domain and the user of a login by its User-Name, and set `home`, `domain`, `user` and `realm`.

    A realm selects one of the RADIUS client's domains, and is removed from the name. Return the reason for a refusal or
    PASSED.
    """
    client = login.arrival.client
    login.home = login.domain = home = default_domain(client, domains)
    if home is None:
        return Reason.NO_DOMAIN
    octets = login.arrival.request.first.get(USER_NAME)
    if not octets:
        return Reason.NO_USER_NAME
    login.user = name = as_name(octets)
    if "@" not in name and "\\" not in name:
        return PASSED
    user, login.realm = split_realm(name)
    domain = domains.by_realm(client.tenant_id, login.realm)
    if domain is None or not (client.all_domains or domain.id in client.domain_ids):
        return Reason.UNKNOWN_REALM
    login.domain, login.user = domain, user
    return PASSED if user else Reason.NO_USER_NAME


def hides_user(login: Login, reason: Reason) -> bool:
    """Return whether a login by EAP has an outer identity without a user: `@realm`, `REALM\\`, or an empty one
    (RFC 7542 section 2.4, RFC 9190 section 2.1.8). The user's name then comes from inside EAP. reason: the result of
    `identify`."""
    return login.outside and (reason is Reason.NO_USER_NAME or login.user in _NAMELESS)


def names_no_user(octets: bytes) -> bool:
    """Return whether a user name is empty or has only a realm."""
    return not split_realm(as_name(octets))[0]


def host_realm(name: str) -> str:
    """Return the realm of a host name: the labels after the first one."""
    return name.partition(".")[2]


def principal(login: Login, domain: Domain, domains: DomainTable, octets: bytes, named_by: NamedBy | None) -> str:
    """Return the user of a name that came inside EAP, without the realm. Return an empty text if the realm does not
    belong to the login's domain.

    named_by: the field of the certificate that contains the name, or None if the name is not from a certificate. All
    domains trust the same certificate authorities. So, if there are several domains, a name in a certificate must have
    a realm. Without a realm it would be valid in every domain.
    """
    name = as_name(octets)
    if "@" in name or "\\" in name:
        user, realm = split_realm(name)
    elif named_by is None or len(domains.by_id) == 1:
        return name
    else:
        user, realm = name, host_realm(name) if named_by is NamedBy.DNS else ""
    found = domains.by_realm(login.arrival.client.tenant_id, realm)
    return user if found is not None and found.id == domain.id else ""


def realm_inside(octets: bytes, named_by: NamedBy | None) -> str:
    """Return the realm of a name that came inside EAP. Return an empty text if it has none. named_by: as in
    `principal`."""
    name = as_name(octets)
    return split_realm(name)[1] or (host_realm(name) if named_by is NamedBy.DNS else "")


def bearers(name: str, domains: DomainTable, tenant_id: int | None) -> list[tuple[int, str]]:
    """Return the users that a certificate with this name admits, as (domain id, name without realm). `principal`
    describes the rules.

    tenant_id: the tenant for which the certificate was issued, or None if no tenant is recorded. All tenants accept a
    certificate without a recorded tenant.
    """
    tenants = domains.by_tenant if tenant_id is None else domains.by_tenant.keys() & {tenant_id}
    user, realm = split_realm(name) if "@" in name or "\\" in name else (name, host_realm(name))
    if user == name and len(domains.by_id) == 1:
        return [(domain.id, name) for each in tenants for domain in domains.by_tenant[each]]
    found = (domains.by_realm(each, realm) for each in tenants)
    return [(domain.id, user) for domain in found if domain is not None]


def in_full(login: Login, name: bytes) -> bytes:
    """Return the user name from inside EAP. A realm is added if the device could otherwise confuse the user with
    another user.

    On a device, a name without a realm belongs to the device's own domain. So the names of users of other domains get
    the realm of the outer identity.
    """
    if login.domain is login.home or b"@" in name or b"\\" in name:
        return name
    _, realm = split_realm(as_name(login.arrival.request.first[USER_NAME]))
    return name + b"@" + realm.encode()


def kind(login: Login) -> AccountKind:
    """Return the kind of principal: user, computer, or station.

    A DNS name in a certificate belongs to a computer. A common name in a certificate belongs to a computer if the outer
    identity is `host/NAME`. Without a certificate, the form of the user name decides.
    """
    if login.method == Method.MAB:
        return AccountKind.UNKNOWN if login.factor == BY_UNKNOWN_ADDRESS else AccountKind.STATION
    if login.named_by is NamedBy.DNS or (login.named_by is NamedBy.COMMON_NAME and _calls_itself_host(login)):
        return AccountKind.MACHINE
    return kind_of(login.user)


def _calls_itself_host(login: Login) -> bool:
    return fold(as_name(login.arrival.request.first.get(USER_NAME, b""))) == f"host/{fold(login.user)}"


def all_groups(found: frozenset[str], imported: frozenset[str] | None) -> frozenset[str] | None:
    """Return the union of the groups that the first factor has found and the groups that were imported from
    directories. Return None if the imported groups are unknown."""
    if not found or imported is None:
        return imported
    return found | imported if imported else found


def kept(tx: Tx, domain: Domain, name: str) -> Membership:
    """Return the groups and units that login rules would find for a user if the user logged in now. name: the name
    without its realm.

    Only the store is read. If the domain asks a directory at each login, and has not imported this user, the result is
    `UNCLEAR`.
    """
    imported = membership(tx, domain.id, name, domain.realm_keys)
    if domain.first_factor is FirstFactor.LDAP and imported is NOBODY:
        return UNCLEAR
    own = active_groups(tx, domain.id, name_key(name)) if domain.first_factor is FirstFactor.LOCAL else frozenset[str]()
    return replace(imported, groups=all_groups(own, imported.groups))
