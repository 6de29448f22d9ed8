"""MS-CHAP and MS-CHAPv2 against an endpoint user's password, and what the answers carry."""

from collections.abc import Callable

import pytest

from sallyport.login.decision import refusal
from sallyport.login.login import Reason
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
from tests.login.conftest import Desk
from tests.packets import microsoft, mschap1, mschap2, opened


def pulled(octets: bytes) -> dict[int, bytes]:
    """Microsoft's attributes in an answer."""
    found: dict[int, bytes] = {}
    for kind, value in pull_attributes(octets):
        vendor, pairs = pull_vendor_attributes(value)
        assert (kind, vendor) == (VENDOR_SPECIFIC, MICROSOFT)
        found.update(pairs)
    return found


async def test_the_second_version(desk: Desk) -> None:
    """The right password is accepted, with the proof that we know it and the keys of both directions."""
    login = desk.login(mschap2("ann", "hello"))
    decision = await desk.decide(login)
    assert (decision.applied, login.method) == ("accept", Method.MSCHAP2)
    found = pulled(login.attributes)
    assert {MS_MPPE_SEND_KEY, MS_MPPE_RECV_KEY} < set(found)
    attempt = recognise(login.request.vendor_values())
    assert isinstance(attempt, MsChap2)
    proof = authenticator_response(attempt, nt_hash_hash(nt_hash(b"hello")), b"ann")
    assert found[MS_CHAP2_SUCCESS] == b"\x07" + proof


async def test_the_first_version(desk: Desk) -> None:
    """The right password is accepted, with the key that both sides know."""
    login = desk.login(mschap1("ann", "hello"))
    assert (await desk.decide(login)).applied == "accept"
    assert login.method == Method.MSCHAP
    assert MS_CHAP_MPPE_KEYS in pulled(login.attributes)


@pytest.mark.parametrize(
    ("user", "hashed"), [("ann@corp", b"ann"), ("ann@corp", b"ann@corp"), ("CORP\\ann", b"ann"), ("CORP\\ann", None)]
)
async def test_what_clients_hash_as_their_name(desk: Desk, user: str, hashed: bytes | None) -> None:
    """With and without the realm: clients differ."""
    assert (await desk.decided(mschap2(user, "hello", hashed_name=hashed)))[0] == "accept"


async def test_passwords_in_other_letters(desk: Desk) -> None:
    """They are characters, whatever octets they are stored in."""
    await desk.areas.add_user(desk.areas.domain, "zoë", "pässwörd ☂".encode())
    assert (await desk.decided(mschap2("zoë", "pässwörd ☂")))[0] == "accept"
    assert (await desk.decided(mschap2("zoë", "passwörd ☂")))[:2] == ("reject", Reason.WRONG_PASSWORD)


@pytest.mark.parametrize("make", [mschap1, mschap2])
@pytest.mark.parametrize(("user", "reason"), [("ann", Reason.WRONG_PASSWORD), ("nobody", Reason.UNKNOWN_USER)])
async def test_a_wrong_password(desk: Desk, make: Callable[[str, str], bytes], user: str, reason: Reason) -> None:
    """Is refused with the error that allows another try, the same whether or not there is such a user."""
    login = desk.login(make(user, "wrong"))
    decision = await desk.decide(login)
    assert (decision.applied, decision.reason) == ("reject", reason)
    error = pulled(refusal(login, decision.reason))[MS_CHAP_ERROR]
    assert error[:1] == b"\x07"
    assert error[1:].startswith(b"E=691 R=1 C=")


async def test_a_reject_for_another_reason(desk: Desk) -> None:
    """Says so where the protocol has a number for it, and that trying again is no use."""
    login = desk.login(mschap2("ann", "hello"))
    await desk.decide(login)
    for reason, told in ((Reason.BLOCKED, b"E=649 R=0"), (Reason.ACCOUNT_DISABLED, b"E=647 R=0"),
                         (Reason.PASSWORD_EXPIRED, b"E=648 R=0"), (Reason.NOT_ENROLLED, b"E=691 R=0")):  # fmt: skip
        assert pulled(refusal(login, reason))[MS_CHAP_ERROR][1:].startswith(told)


async def test_a_password_change(desk: Desk) -> None:
    """Is refused with its own error: passwords are not changed over RADIUS."""
    login = desk.login(microsoft("ann", (MS_CHAP_CHALLENGE, bytes(16)), (MS_CHAP2_CPW, bytes((7, 9)) + bytes(66))))
    decision = await desk.decide(login)
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
async def test_what_cannot_be_checked(desk: Desk, pairs: tuple[tuple[int, bytes], ...]) -> None:
    """A challenge that is missing or of another size, a response that is not whole, or two: refused, and answered."""
    login = desk.login(microsoft("ann", *pairs))
    decision = await desk.decide(login)
    assert (decision.applied, decision.reason) == ("reject", Reason.NO_CREDENTIALS)
    assert refusal(login, decision.reason) == b""


def test_a_packet_is_what_it_says() -> None:
    """The tests' own packets are MS-CHAP to the codec."""
    assert isinstance(recognise(opened(mschap2("ann", "x")).vendor_values()), MsChap2)
