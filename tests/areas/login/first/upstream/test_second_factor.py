"""Tests of a second factor after a home server's Accept: the home server is asked once, and the attributes of its
Accept are kept."""

from collections.abc import Iterable

import pytest

from sallyport.areas.login.login import Reason
from sallyport.areas.mfa.provider import Outcome
from sallyport.radius.attributes import (
    CLASS,
    STATE,
    USER_NAME,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.mschap import MICROSOFT, MS_MPPE_RECV_KEY
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT, Request, SharedSecret, encode_reply
from sallyport.radius.salted import Hiding
from tests import areas as shared
from tests.areas.login.first.upstream.conftest import Upstream
from tests.areas.login.first.upstream.home_server import PASSWORD, SECRET, SORRY, typed
from tests.areas.login.listen.second import SESSION, a_login, events, prompted
from tests.areas.login.second.scripted import Script
from tests.packets import access_request, attributes, opened

KEY = bytes(range(32))
ARUBA, MPSK_PASSPHRASE = 14823, 44
VLAN = push_attribute(64, b"\0\0\0\x0d") + push_attribute(65, b"\0\0\0\x06") + push_attribute(81, b"20")
GRANTED = VLAN + push_attribute(CLASS, b"\0\xffclass")


def grant(request: Request) -> Iterable[bytes]:
    """Return an Accept with a VLAN, a Class and a key."""
    key = push_vendor_attribute(MICROSOFT, MS_MPPE_RECV_KEY, Hiding(SECRET, request.authenticator).hide(KEY))
    return [encode_reply(ACCESS_ACCEPT, request, SECRET, GRANTED + key)]


@pytest.fixture
async def script(upstream: Upstream) -> Script:
    """Set the domain to enforce, with a push as the second factor."""
    upstream.first.reply = grant
    script = Script()
    await script.attach(upstream.areas)
    return script


def login(password: str | bytes = PASSWORD, body: bytes = b"") -> bytes:
    """Return a request of the same session."""
    return a_login(SESSION + body, password=password if isinstance(password, str) else password.decode())


async def test_keys_outlive_a_parked_push(upstream: Upstream, script: Script) -> None:
    """The home server and the user are each asked once.

    The NAS then gets all attributes, and the key is encrypted for its latest request.
    """
    datagram = login()
    upstream.wire.put(datagram)
    await prompted(script)
    assert upstream.wire.auth.in_flight == 1
    for _ in range(3):  # the home server has answered, and gets none of these
        upstream.wire.put(datagram)
    script.answer(0, Outcome.APPROVED)
    code, answer = await upstream.answer(datagram)
    assert (code, answer[: len(GRANTED)]) == (ACCESS_ACCEPT, GRANTED)
    ((_, vendor),) = pull_attributes(answer[len(GRANTED) :])
    _, ((_, hidden),) = pull_vendor_attributes(vendor)
    assert Hiding(SharedSecret(shared.SECRET), opened(datagram).authenticator).reveal(hidden) == KEY
    assert len(upstream.first.received) == 1
    assert await upstream.reasons() == [Reason.NONE]


async def test_attributes_outlive_a_challenge(upstream: Upstream, script: Script) -> None:
    """The Accept that ends the challenge has the VLAN and the Class.

    The home server gets neither the code nor the State.
    """
    script.begins = Outcome.CODE
    code, answer = await upstream.ask(login())
    state = dict(pull_attributes(answer))[STATE]
    assert code == ACCESS_CHALLENGE
    assert await upstream.ask(login("123456", attributes(STATE=state))) == (ACCESS_ACCEPT, GRANTED)
    assert len(upstream.first.received) == 1


async def test_an_encrypted_attribute_is_not_kept_over_a_challenge(upstream: Upstream, script: Script) -> None:
    """An attribute that the dictionary marks as encrypted is not kept across a challenge, because it was encrypted for
    the earlier request."""
    script.begins = Outcome.CODE

    def reply(request: Request) -> Iterable[bytes]:
        passphrase = push_vendor_attribute(ARUBA, MPSK_PASSPHRASE, Hiding(SECRET, request.authenticator).hide(b"open"))
        return [encode_reply(ACCESS_ACCEPT, request, SECRET, GRANTED + passphrase)]

    upstream.first.reply = reply
    _, answer = await upstream.ask(login())
    state = dict(pull_attributes(answer))[STATE]
    assert await upstream.ask(login("123456", attributes(STATE=state))) == (ACCESS_ACCEPT, GRANTED)


async def test_the_inner_user_is_asked(upstream: Upstream, script: Script) -> None:
    """The second factor is requested for the user in the home server's Accept, not for the outer name."""
    named = push_attribute(USER_NAME, b"alice")
    upstream.first.reply = lambda request: [encode_reply(ACCESS_ACCEPT, request, SECRET, named)]
    datagram = access_request(SESSION + attributes(USER_NAME=b"anonymous", EAP_MESSAGE=b"\2\1\0\5\1"))
    upstream.wire.put(datagram)
    await prompted(script)
    assert [question.user for question in script.started] == ["alice"]
    script.answer(0, Outcome.APPROVED)
    assert (await upstream.answer(datagram))[0] == ACCESS_ACCEPT
    assert [event.user_name for event in await events(upstream.areas)] == ["alice"]


async def test_an_accept_of_another_user_is_a_reject(upstream: Upstream, script: Script) -> None:
    """If the Accept for a password login contains another user name, the login is rejected and neither user gets a
    push."""
    named = push_attribute(USER_NAME, b"alice")
    upstream.first.reply = lambda request: [encode_reply(ACCESS_ACCEPT, request, SECRET, named)]
    assert await upstream.ask(login()) == (ACCESS_REJECT, b"")
    assert await upstream.reasons() == [Reason.REFUSED_UPSTREAM]
    assert not script.disturbed


async def test_a_denied_push_grants_nothing(upstream: Upstream, script: Script) -> None:
    """A denied push rejects the login, although the home server accepted it. No attribute is sent."""
    datagram = login()
    upstream.wire.put(datagram)
    await prompted(script)
    script.answer(0, Outcome.DENIED)
    assert await upstream.answer(datagram) == (ACCESS_REJECT, b"")


async def test_a_wrong_password_sends_no_push(upstream: Upstream, script: Script) -> None:
    """After a wrong password no push is sent."""
    upstream.first.reply = lambda request: [encode_reply(ACCESS_REJECT, request, SECRET, SORRY)]
    assert await upstream.ask(login("wrong")) == (ACCESS_REJECT, SORRY)
    assert not script.disturbed


async def test_a_code_appended_to_the_password(upstream: Upstream, script: Script) -> None:
    """A code is removed from the password before the home server is asked. The provider checks the code."""
    code, _ = await upstream.ask(login("s3cret123456"))
    assert code == ACCESS_ACCEPT
    assert [typed(request) for request in upstream.first.received] == [PASSWORD]
    assert [text for text, _ in script.verified] == ["123456"]


async def test_a_code_of_eight_digits(upstream: Upstream, script: Script) -> None:
    """If codeDigits is eight, eight digits are removed from the end, and six digits are part of the password."""
    await upstream.configure(codeDigits=8)
    code, _ = await upstream.ask(login("s3cret12345678"))
    assert code == ACCESS_ACCEPT
    assert [text for text, _ in script.verified] == ["12345678"]
    script.begins = Outcome.DENIED
    await upstream.ask(login("s3cret123456"))
    assert [typed(request) for request in upstream.first.received] == [PASSWORD, b"s3cret123456"]


@pytest.mark.parametrize("password", ["s3cret12345", "123456", "s3cret123456x"])
async def test_a_password_without_a_code(upstream: Upstream, script: Script, password: str) -> None:
    """Nothing is removed unless a code is appended to a password."""
    upstream.first.reply = lambda request: [encode_reply(ACCESS_REJECT, request, SECRET)]
    await upstream.ask(login(password))
    assert [typed(request) for request in upstream.first.received] == [password.encode()]


async def test_no_code_where_the_provider_takes_none(upstream: Upstream, script: Script) -> None:
    """If the provider does not support codes, the digits are part of the password."""
    script.takes_codes = False
    await script.attach(upstream.areas)
    upstream.first.reply = lambda request: [encode_reply(ACCESS_REJECT, request, SECRET)]
    await upstream.ask(login("s3cret123456"))
    assert [typed(request) for request in upstream.first.received] == [b"s3cret123456"]
