"""Tests of EAP at a home server. The outer identity hides the user (`@realm`, `REALM\\`, or nothing), or names another
person."""

import pytest

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.login.login import Reason
from sallyport.radius.attributes import EAP_MESSAGE, push_attribute
from sallyport.radius.eap.packet import GTC, MD5, MSCHAPV2, PEAP, TLS, TTLS
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas.login.first.upstream.conftest import Upstream
from tests.areas.login.first.upstream.test_passed_on import answers
from tests.areas.login.listen.second import events
from tests.packets import access_request, attributes

IDENTITY = push_attribute(EAP_MESSAGE, b"\2\1\0\5\1")


@pytest.mark.parametrize("strips", [False, True], ids=["whole", "stripped"])
@pytest.mark.parametrize("name", [b"@corp", b"CORP\\", b""])
async def test_a_hidden_user_is_passed_on(upstream: Upstream, name: bytes, strips: bool) -> None:
    """EAP with an outer identity without a user is passed on unchanged, even if the realm is taken off other names.

    The name comes from the home server's Accept.
    """
    await upstream.configure(stripRealm=strips)
    answers(upstream.first, ACCESS_ACCEPT, attributes(USER_NAME=b"alice"))
    body = attributes(USER_NAME=name) + IDENTITY
    assert (await upstream.ask(access_request(body)))[0] == ACCESS_ACCEPT
    assert upstream.first.names == [name]
    assert [event.user_name for event in await events(upstream.areas)] == ["alice"]


async def test_an_unknown_realm_is_not_passed_on(upstream: Upstream) -> None:
    """An unknown outer realm is refused here."""
    body = attributes(USER_NAME=b"@nobody") + IDENTITY
    assert (await upstream.ask(access_request(body)))[0] == ACCESS_REJECT
    assert (upstream.first.received, await upstream.reasons()) == ([], [Reason.UNKNOWN_REALM])


@pytest.mark.parametrize("named", [b"", attributes(USER_NAME=b"@corp")], ids=["no name", "the outer name"])
async def test_nobody_is_asked_for_a_hidden_user(upstream: Upstream, named: bytes) -> None:
    """If the home server does not disclose the user, no second factor can be asked for. Enforce mode refuses the login,
    and monitor mode records this."""
    answers(upstream.first, ACCESS_ACCEPT, named)
    body = attributes(USER_NAME=b"@corp") + IDENTITY
    assert (await upstream.ask(access_request(body)))[0] == ACCESS_ACCEPT
    await upstream.areas.domains.set_mode([upstream.areas.domain], Mode.ENFORCE, fallback=Fallback.ALLOW)
    assert (await upstream.ask(access_request(body, identifier=1)))[0] == ACCESS_REJECT
    recorded = [(each.reason, each.would_have_been) for each in await events(upstream.areas)]
    assert recorded == [(Reason.NO_USER_NAME, "reject"), (Reason.NO_USER_NAME, "")]


def response(kind: int) -> bytes:
    """Return the attributes of a request with a response of an EAP type, and the outer identity mallory."""
    return attributes(USER_NAME=b"mallory") + push_attribute(EAP_MESSAGE, bytes((2, 1, 0, 6, kind, 0)))


TUNNEL = pytest.mark.parametrize(
    "kind", [TLS, TTLS, PEAP, 43, 52, 55], ids=["TLS", "TTLS", "PEAP", "FAST", "PWD", "TEAP"]
)
NOT_NAMED = pytest.mark.parametrize(
    "named", [b"", attributes(USER_NAME=b"mallory"), attributes(USER_NAME=b"mallory@corp")],
    ids=["no name", "the outer name", "the outer name with its realm"],
)  # fmt: skip


@TUNNEL
@NOT_NAMED
async def test_the_outer_identity_proves_no_user(upstream: Upstream, kind: int, named: bytes) -> None:
    """Inside a tunnel, the password may be that of another person than the outer identity. So an outer identity that
    the home server repeats, or leaves unnamed, decides neither the second factor nor the login rules."""
    await upstream.configure()
    answers(upstream.first, ACCESS_ACCEPT, named)
    assert (await upstream.ask(access_request(response(kind))))[0] == ACCESS_ACCEPT
    await upstream.areas.domains.set_mode([upstream.areas.domain], Mode.ENFORCE, fallback=Fallback.ALLOW)
    assert (await upstream.ask(access_request(response(kind), identifier=1)))[0] == ACCESS_REJECT
    recorded = [(each.user_name, each.reason, each.detail) for each in await events(upstream.areas)]
    assert recorded == [("", Reason.NO_USER_NAME, "outer identity mallory")] * 2


@TUNNEL
async def test_the_name_inside_a_tunnel_is_the_user(upstream: Upstream, kind: int) -> None:
    """A name in the Access-Accept that differs from the outer identity is the user."""
    answers(upstream.first, ACCESS_ACCEPT, attributes(USER_NAME=b"alice"))
    assert (await upstream.ask(access_request(response(kind))))[0] == ACCESS_ACCEPT
    assert [event.user_name for event in await events(upstream.areas)] == ["alice"]


@TUNNEL
@NOT_NAMED
async def test_servers_that_name_the_inner_user_are_trusted(upstream: Upstream, kind: int, named: bytes) -> None:
    """With namesInnerUser, the name in the Access-Accept is the user, also if it is the outer identity."""
    await upstream.configure(namesInnerUser=True)
    answers(upstream.first, ACCESS_ACCEPT, named)
    assert (await upstream.ask(access_request(response(kind))))[0] == ACCESS_ACCEPT
    assert [event.user_name for event in await events(upstream.areas)] == ["mallory"]


@pytest.mark.parametrize("kind", [MD5, GTC, MSCHAPV2])
async def test_without_a_tunnel_the_identity_is_the_user(upstream: Upstream, kind: int) -> None:
    """A type without a tunnel proves the password of the EAP identity itself."""
    answers(upstream.first, ACCESS_ACCEPT)
    assert (await upstream.ask(access_request(response(kind))))[0] == ACCESS_ACCEPT
    assert [event.user_name for event in await events(upstream.areas)] == ["mallory"]
