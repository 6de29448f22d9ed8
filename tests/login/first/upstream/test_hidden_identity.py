"""Tests of EAP at a home server with an outer identity that hides the user: `@realm`, `REALM\\`, or nothing."""

import pytest

from sallyport.domains.domain import Fallback, Mode
from sallyport.login.login import Reason
from sallyport.radius.attributes import EAP_MESSAGE, push_attribute
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.listen.second import events
from tests.login.first.upstream.conftest import Upstream
from tests.login.first.upstream.test_passed_on import answers
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
