"""Tests of outer identities that hide the user: `@realm`, `REALM\\`, or nothing (RFC 7542 section 2.4)."""

import pytest

from sallyport.areas.events.event import EventQuery, EventRow
from sallyport.areas.events.service import Events
from sallyport.areas.login.login import Reason
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode, push_eap_message
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.sides import ANN, NO_PROVIDER, SIDES, peap, ttls
from tests.areas.login.listen.second import SESSION
from tests.packets import access_request
from tests.radius.eap.supplicant import Md5Side, MsChapSide, TlsSide, in_peap, in_ttls_pap, silent

HIDDEN = [b"@corp", b"CORP\\", b"", b"@", b"\\"]


async def events_of(nas: Nas, domain_id: int) -> list[EventRow]:
    """Return the events of a domain."""
    return (await Events(nas.wire.areas.store).page(EventQuery(domain_id, limit=10)))[0]


@pytest.mark.parametrize("outer", HIDDEN)
@pytest.mark.parametrize("method", SIDES)
async def test_the_name_comes_from_the_tunnel(nas: Nas, method: str, outer: bytes) -> None:
    """A login whose outer identity has no user is a login of the inner user."""
    assert (await nas.log_in(SIDES[method](b"hello"), outer)).code == ACCESS_ACCEPT
    assert (await nas.log_in(SIDES[method](b"wrong"), outer)).code == ACCESS_REJECT
    assert await nas.outcomes() == [(NO_PROVIDER, "ann", method), ("wrong password", "ann", method)]


@pytest.mark.parametrize("outer", HIDDEN)
async def test_the_name_comes_from_the_certificate(nas: Nas, outer: bytes) -> None:
    """The outer identity of EAP-TLS need not have a user."""
    side = TlsSide(eap.TLS, silent, shows=nas.authority.certificate("ann"))
    assert (await nas.log_in(side, outer)).code == ACCESS_ACCEPT
    assert await nas.outcomes() == [(NO_PROVIDER, "ann", "eap-tls")]


async def test_a_session_is_resumed_for_the_hidden_user(nas: Nas) -> None:
    """A resumed session has the user of its first login."""
    before = peap(b"hello")
    assert (await nas.log_in(before, b"@corp")).code == ACCESS_ACCEPT
    side = TlsSide(eap.PEAP, in_peap(ANN, MsChapSide(ANN, b"not asked for")), before=before)
    assert (await nas.log_in(side, b"@corp")).code == ACCESS_ACCEPT
    assert [user for _, user, _ in await nas.outcomes()] == ["ann", "ann"]


async def test_the_first_request_may_have_no_user_name(nas: Nas) -> None:
    """A NAS that sends EAP-Start for an unknown user gets a request for the identity (RFC 3579 section 2.1)."""
    datagram = access_request(SESSION + push_eap_message(encode(Packet(RESPONSE, 0, IDENTITY, b""))))
    nas.wire.put(datagram)
    assert (await nas.answer(datagram))[0].code == ACCESS_CHALLENGE


@pytest.mark.parametrize(
    ("outer", "inner", "reason"),
    [
        (b"@branch", b"bob", NO_PROVIDER),
        (b"BRANCH\\", b"bob@branch", NO_PROVIDER),
        (b"@branch", b"ann", "unknown user"),
        (b"@branch", b"ann@corp", "unknown realm"),
        (b"@corp", b"bob@branch", "unknown realm"),
        (b"", b"bob@branch", "unknown realm"),
        (b"", b"bob", "unknown user"),
        (b"@corp", b"@corp", "no user name"),
    ],
)
async def test_the_outer_realm_chooses_the_domain(nas: Nas, outer: bytes, inner: bytes, reason: str) -> None:
    """The outer realm chooses the domain; without a realm it is the default domain. An inner name of another domain is
    refused."""
    areas = nas.wire.areas
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.add_user(branch, "bob", b"hello")
    for side in (ttls(in_ttls_pap(inner, b"hello")), peap(b"hello", inner)):
        await nas.log_in(side, outer)
    chosen, other = (branch, areas.domain) if b"branch" in outer.lower() else (areas.domain, branch)
    recorded = [[each.reason for each in await events_of(nas, domain)] for domain in (chosen, other)]
    assert recorded == [[reason] * 2, []]


async def test_an_accept_for_a_hidden_user_has_the_realm(nas: Nas) -> None:
    """The User-Name of the Access-Accept has the outer realm if the domain is not the default domain."""
    areas = nas.wire.areas
    await areas.add_user(await areas.domains.add(areas.tenant, "branch"), "ann", b"hello")
    assert [(await nas.log_in(peap(b"hello"), outer)).names for outer in (b"@branch", b"")] == [[b"ann@branch"], [ANN]]


@pytest.mark.parametrize("outer", [b"@nobody", b"NOBODY\\"])
async def test_an_unknown_outer_realm(nas: Nas, outer: bytes) -> None:
    """An unknown outer realm is refused at the first packet."""
    ended = await nas.log_in(peap(b"hello"), outer)
    assert (ended.code, ended.rounds) == (ACCESS_REJECT, 0)
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.UNKNOWN_REALM]


@pytest.mark.parametrize("outer", [b"@corp", b"CORP\\", b""])
async def test_a_method_without_a_tunnel(nas: Nas, outer: bytes) -> None:
    """A method without a tunnel has no other name than the outer identity."""
    for side in (Md5Side(b"hello"), MsChapSide(b"", b"hello")):
        assert (await nas.log_in(side, outer)).code == ACCESS_REJECT
    assert [(reason, user) for reason, user, _ in await nas.outcomes()] == [(Reason.NO_USER_NAME, "")] * 2


async def test_failures_lock_the_inner_user_only(nas: Nas) -> None:
    """Wrong passwords behind a hidden identity lock the inner user, and no other user with the same identity."""
    await nas.wire.areas.add_user(nas.wire.areas.domain, "bob", b"hello")
    for number in range(3):
        await nas.log_in(peap(f"wrong {number}".encode()), b"@corp")
    other = SESSION.replace(b"02-00-00-00-00-01", b"02-00-00-00-00-02")
    assert (await nas.log_in(peap(b"hello"), b"@corp", other)).code == ACCESS_REJECT
    assert (await nas.log_in(peap(b"hello", b"bob"), b"@corp", other)).code == ACCESS_ACCEPT
