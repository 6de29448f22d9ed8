"""The facts of a login: those that login rules compare, and those that are recorded with the login."""

import json
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Final

from sallyport.areas.directory.principals import NOBODY
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.identity import all_groups, kind
from sallyport.areas.login.login import Login
from sallyport.areas.policy.rules.comparisons import method_in_rules
from sallyport.areas.policy.rules.conditions import CLAIMS, CONDITIONS
from sallyport.areas.policy.rules.facts import NO_CLAIMS, Facts, kind_of
from sallyport.areas.policy.rules.match import MAX_OCTETS, Reading
from sallyport.base.addresses import endpoint_address
from sallyport.radius.attributes import (
    SERVICE_TYPE,
    TUNNEL_CLIENT_ENDPOINT,
)
from sallyport.radius.eap.certificate import certificate_facts
from sallyport.radius.eap.certificate_names import AUTHORITY
from sallyport.radius.packet import Request, as_text
from sallyport.radius.password import Method
from sallyport.radius.vendors import medium

ALL: Final = frozenset(each.field for each in CONDITIONS)
DEVICE_FACT: Final = "device="
"""The beginning of a fact of a device of Entra ID, among the facts of the client certificate."""
_LAST_TAG: Final = 0x1F  # RFC 2868 section 3.3


def facts_of(
    login: Login, compared: frozenset[str] = ALL, attributes: Mapping[str, tuple[str, ...]] | None = None
) -> Facts:
    """Return the facts that login rules compare. The login must have passed its first factor, and `login.device` must
    be set. compared: the fields of the conditions that the rules have. attributes: the attributes that the rules
    compare, or None if there are none."""
    device, imported, request = login.device, login.imported or NOBODY, login.arrival.request
    return Facts(
        user=login.user,
        kind=kind(login),
        groups=all_groups(login.found.groups, imported.groups),
        ous=all_groups(login.found.ous, imported.ous),
        client=login.arrival.client.name,
        source=login.arrival.source[0],
        nas=device.client_ip,
        product=device.device_type,
        nas_product=device.nas_device_type,
        medium=medium(request),
        station=login.station,
        service_type=request.integer(SERVICE_TYPE),
        at=login.arrival.at,
        names=login.names,
        ssid=login.network.ssid,
        port=login.network.port,
        realm=login.realm,
        method=login.resumed or method_in_rules(login.method) if "methods" in compared else "",
        address=address_of_endpoint(request, login.station) if "addresses" in compared else "",
        certificates=_certificate(login) if "certificates" in compared else (),
        attributes=attributes,
        tags=device.tags if "tags" in compared else None,
        claims=NO_CLAIMS if compared.isdisjoint(CLAIMS) else claims_of(login),
    )


def facts_key(login: Login, reading: Reading) -> Hashable:
    """Return a key for all facts that rules compare and the event records, or None if the facts are too long. Logins
    with the same key have the same facts. The key costs much less time than the facts. The login must have no client
    certificate."""
    request, client, device = login.arrival.request, login.arrival.client, login.device
    octets = request.without(reading.unread)
    if len(octets) > MAX_OCTETS:
        return None
    return (
        octets,
        login.method,
        login.resumed,
        login.factor,
        login.network if reading.network else None,
        (kind(login) if login.method == Method.MAB else kind_of(login.user)) if reading.kind else None,
        (device.client_ip, device.device_type, device.nas_device_type) if reading.device else None,
        (client.name, login.arrival.source[0]) if reading.client else None,
        login.realm if reading.realm else None,
        device.tags if reading.tags else None,
        (NO_CLAIMS if client.proves(request) else claims_of(login)) if reading.claims else None,
    )


def claims_of(login: Login) -> frozenset[str]:
    """Return the fields of the conditions whose facts are only claims of the sender in this login.

    There are none for a station that is admitted by its MAC address, because it is never asked for a second factor.
    """
    if login.method == Method.MAB or login.arrival.client.proves(login.arrival.request):
        return NO_CLAIMS
    return claims_in(login.domain, tags=login.device.has_claimed_tags(login.device))


def claims_in(domain: Domain | None, *, tags: bool) -> frozenset[str]:
    """Return the fields of the conditions whose facts may be only claims in a domain. They include the method only if
    the sender vouches for passwords. Otherwise this service itself has checked the method.

    tags: whether they include the tags (`DeviceTags.are_claimed`). The tags of the RADIUS client are no claims, unless
    a device of the same sender has tags of its own: without its name, it would have those of the client.
    """
    vouches = domain is None or domain.first_factor is FirstFactor.NONE
    return CLAIMS - {name for name, is_claim in (("methods", vouches), ("tags", tags)) if not is_claim}


def _certificate(login: Login) -> tuple[str, ...]:
    """Return the facts of the client certificate, the authority of the domain that has signed it, and the facts of the
    device of Entra ID that it names."""
    if login.certificate is None:
        return ()
    found = list(certificate_facts(login.certificate))
    if login.authority:
        found.append(f"{AUTHORITY}={login.authority}")
    state = login.imported.cloud if login.imported is not None and login.cloud else None
    return (*found, *(f"{DEVICE_FACT}{each}" for each in (state.device if state else ())))


def address_of_endpoint(request: Request, station: str) -> str:
    """Return the IP address of the user's endpoint in canonical form: the Calling-Station-Id or the
    Tunnel-Client-Endpoint, if one of them is an IP address. Otherwise return an empty text."""
    found = endpoint_address(station) if station else ""
    if not found and (octets := request.first.get(TUNNEL_CLIENT_ENDPOINT)):
        found = endpoint_address(as_text(octets[1:] if octets[0] <= _LAST_TAG else octets))
    return found


def further_facts(facts: Facts, login: Login) -> str | None:
    """Return the facts that the event of a login records beside its columns, as JSON, or None if there are none. With
    them, the login can be decided again later."""
    address = facts.address if facts.address and not endpoint_address(login.station) else ""
    method = login.resumed if facts.method else ""
    attributes = tuple(facts.attributes.items()) if facts.attributes else ()
    if not (address or method or facts.certificates or attributes):
        return None
    return _as_json(address, method, facts.certificates, attributes)


@lru_cache(1024)
def _as_json(
    address: str, method: str, certificates: tuple[str, ...], attributes: tuple[tuple[str, tuple[str, ...]], ...]
) -> str:
    """Return further facts as JSON. Devices send the same attributes again and again."""
    known = {"address": address, "method": method, "certificates": certificates, "attributes": dict(attributes)}
    return json.dumps({name: value for name, value in known.items() if value})
