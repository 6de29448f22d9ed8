"""Tests of MS-CHAP and MS-CHAPv2 with an endpoint user's password, and of the attributes in the answers."""

from collections.abc import Callable

import pytest

from sallyport.areas.login.decision import refusal
from sallyport.areas.login.login import Reason
from sallyport.radius.attributes import VENDOR_SPECIFIC, pull_attributes, pull_vendor_attributes
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_CPW,
    MS_CHAP2_RESPONSE,
    MS_CHAP2_SUCCESS,
    MS_CHAP_CHALLENGE,
    MS_CHAP_ERROR,
    MS_CHAP_MPPE_KEYS,
    MS_MPPE_RECV_KEY,
    MS_MPPE_SEND_KEY,
    MsChap2,
    authenticator_response,
    nt_hash,
    nt_hash_hash,
    recognise,
)
from sallyport.radius.password import Method
from tests.areas.login.conftest import FakeListener
from tests.packets import microsoft, mschap1, mschap2, opened


def pulled(octets: bytes) -> dict[int, bytes]:
    """Return the Microsoft attributes of an answer."""
    found: dict[int, bytes] = {}
    for kind, value in pull_attributes(octets):
        vendor, pairs = pull_vendor_attributes(value)
        assert (kind, vendor) == (VENDOR_SPECIFIC, MICROSOFT)
        found.update(pairs)
    return found


async def test_the_second_version(listener: FakeListener) -> None:
    """A right MS-CHAPv2 response gets an Accept with the authenticator response and the keys for both directions."""
    login = listener.login(mschap2("ann", "hello"))
    decision = await listener.decide(login)
    assert (decision.applied, login.method) == ("accept", Method.MSCHAP2)
    found = pulled(login.attributes + login.found.keys)
    assert {MS_MPPE_SEND_KEY, MS_MPPE_RECV_KEY} < set(found)
    attempt = recognise(login.arrival.request.vendor_values())
    assert isinstance(attempt, MsChap2)
    proof = authenticator_response(attempt, nt_hash_hash(nt_hash(b"hello")), b"ann")
    assert found[MS_CHAP2_SUCCESS] == b"\x07" + proof


async def test_the_first_version(listener: FakeListener) -> None:
    """A right MS-CHAP response gets an Accept with the keys."""
    login = listener.login(mschap1("ann", "hello"))
    assert (await listener.decide(login)).applied == "accept"
    assert login.method == Method.MSCHAP
    assert MS_CHAP_MPPE_KEYS in pulled(login.found.keys)


@pytest.mark.parametrize(
    ("user", "hashed"), [("ann@corp", b"ann"), ("ann@corp", b"ann@corp"), ("CORP\\ann", b"ann"), ("CORP\\ann", None)]
)
async def test_the_hashed_name_may_have_a_realm(listener: FakeListener, user: str, hashed: bytes | None) -> None:
    """The name in the hash may be with or without the realm, because clients differ."""
    assert (await listener.decided(mschap2(user, "hello", hashed_name=hashed)))[0] == "accept"


async def test_passwords_in_other_letters(listener: FakeListener) -> None:
    """A password with non-ASCII characters is right."""
    await listener.areas.add_user(listener.areas.domain, "zoë", "pässwörd ☂".encode())
    assert (await listener.decided(mschap2("zoë", "pässwörd ☂")))[0] == "accept"
    assert (await listener.decided(mschap2("zoë", "passwörd ☂")))[:2] == ("reject", Reason.WRONG_PASSWORD)


@pytest.mark.parametrize("make", [mschap1, mschap2])
@pytest.mark.parametrize(("user", "reason"), [("ann", Reason.WRONG_PASSWORD), ("nobody", Reason.UNKNOWN_USER)])
async def test_a_wrong_password(
    listener: FakeListener, make: Callable[[str, str], bytes], user: str, reason: Reason
) -> None:
    """A wrong response gets the error that allows a retry. The error is the same for a known and an unknown user."""
    login = listener.login(make(user, "wrong"))
    decision = await listener.decide(login)
    assert (decision.applied, decision.reason) == ("reject", reason)
    error = pulled(refusal(login, decision.reason))[MS_CHAP_ERROR]
    assert error[:1] == b"\x07"
    assert error[1:].startswith(b"E=691 R=1 C=")


async def test_a_reject_for_another_reason(listener: FakeListener) -> None:
    """A reject for another reason allows no retry. It has its own error number if the protocol defines one."""
    login = listener.login(mschap2("ann", "hello"))
    await listener.decide(login)
    for reason, error in ((Reason.BLOCKED, b"E=649 R=0"), (Reason.ACCOUNT_DISABLED, b"E=647 R=0"),
                         (Reason.PASSWORD_EXPIRED, b"E=648 R=0"), (Reason.NOT_ENROLLED, b"E=691 R=0")):  # fmt: skip
        assert pulled(refusal(login, reason))[MS_CHAP_ERROR][1:].startswith(error)


async def test_a_password_change(listener: FakeListener) -> None:
    """A change of the password is refused with its own error, because the service does not change passwords over
    RADIUS."""
    login = listener.login(microsoft("ann", (MS_CHAP_CHALLENGE, bytes(16)), (MS_CHAP2_CPW, bytes((7, 9)) + bytes(66))))
    decision = await listener.decide(login)
    assert (decision.applied, decision.reason, login.method) == ("reject", Reason.CHANGES_PASSWORD, Method.MSCHAP2)
    assert pulled(refusal(login, decision.reason))[MS_CHAP_ERROR].startswith(b"\x09E=709 R=0")


@pytest.mark.parametrize(
    "pairs",
    [
        ((MS_CHAP2_RESPONSE, bytes(50)),),
        ((MS_CHAP_CHALLENGE, bytes(8)), (MS_CHAP2_RESPONSE, bytes(50))),
        ((MS_CHAP_CHALLENGE, bytes(16)), (MS_CHAP2_RESPONSE, bytes(49))),
        ((MS_CHAP_CHALLENGE, bytes(16)), (MS_CHAP2_RESPONSE, bytes(50)), (MS_CHAP2_RESPONSE, bytes(50))),
    ],
)
async def test_an_incomplete_request_is_rejected(listener: FakeListener, pairs: tuple[tuple[int, bytes], ...]) -> None:
    """A request is rejected if its challenge is missing or has a wrong length, or if its response is incomplete or
    occurs twice."""
    login = listener.login(microsoft("ann", *pairs))
    decision = await listener.decide(login)
    assert (decision.applied, decision.reason) == ("reject", Reason.NO_CREDENTIALS)
    assert refusal(login, decision.reason) == b""


def test_the_codec_recognizes_mschap_packets() -> None:
    """The codec recognizes the packets that these tests make as MS-CHAP."""
    assert isinstance(recognise(opened(mschap2("ann", "x")).vendor_values()), MsChap2)
