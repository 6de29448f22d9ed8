"""Password and code in one field: the code is at the right end."""

import pytest

from sallyport.areas.domains.domain import Mode
from sallyport.areas.login.login import Decision
from sallyport.areas.mfa.provider import Enrolment, Outcome
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.areas.login.second.scripted import Script, attached
from tests.packets import chap, pap
from tests.waiting import until


async def ended(listener: FakeListener, typed: str | bytes, user: str = "ann") -> tuple[str, str]:
    """Return the applied decision and the reason."""
    decision: Decision = await listener.decide(listener.login(pap(user, typed)))
    return decision.applied, decision.reason


@pytest.mark.parametrize("code", ["123456", "12345678"])
@pytest.mark.parametrize("password", ["hello", "hello99", "hello123456", "12345678", "123456", "1", "pass word\xe4;"])
async def test_the_right_end_is_the_code(listener: FakeListener, script: Script, password: str, code: str) -> None:
    """6 or 8 digits after any password are a code, also after a password that ends in digits, one of digits alone, and
    a separator."""
    await listener.areas.add_user(listener.areas.domain, "eve", password.encode())
    assert await ended(listener, password + code, "eve") == ("accept", "")
    assert (script.started, script.verified) == ([], [(code, "")])
    assert await ended(listener, password + code, "eve") == ("reject", "wrong code")


async def test_a_password_that_ends_in_digits_is_no_code(listener: FakeListener, script: Script) -> None:
    """A password that ends in digits is the whole password if it is right: the user is prompted, and no code is
    checked."""
    script.begins = Outcome.CODE
    for name, password in (("eve", "hello123456"), ("mallory", "12345678"), ("trent", "12345612345678")):
        await listener.areas.add_user(listener.areas.domain, name, password.encode())
        assert (await ended(listener, password, name))[0] == "challenge"
    assert (len(script.started), script.verified) == (3, [])


@pytest.mark.parametrize("blank", [b" ", b"\xc2\xa0", b"\xa0"], ids=["blank", "no-break", "windows-1252"])
@pytest.mark.parametrize("code", [b"123456", b"12345678"])
async def test_a_code_in_two_groups_is_appended(
    listener: FakeListener, script: Script, code: bytes, blank: bytes
) -> None:
    """A blank or a no-break space may divide the appended code into two groups of the same length."""
    half = len(code) // 2
    assert await ended(listener, b"hello" + code[:half] + blank + code[half:]) == ("accept", "")
    assert script.verified == [(code.decode(), "")]


@pytest.mark.parametrize(
    "typed",
    ["hello123-456", "hello12 3456", "hello123  456", "hello 123 456", "123 456", "hello123 4567", "hello123\t456"],
)
async def test_other_groups_are_not_appended(listener: FakeListener, script: Script, typed: str) -> None:
    """A dash, another blank, two blanks or other groups may belong to the password, which is wrong then."""
    assert await ended(listener, typed) == ("reject", "wrong password")
    assert not script.disturbed


@pytest.mark.parametrize(
    "typed",
    ["wrong123456", "123456", "12345678", "hello12345", "hello1234567", "hello12345a", "hello 123456", "", "he"],
)
async def test_a_wrong_password_with_a_right_code(listener: FakeListener, script: Script, typed: str) -> None:
    """A wrong password with a right code is a wrong password, and the code is not used. So are five, seven and nine
    digits, and a code without a password."""
    assert await ended(listener, typed) == ("reject", "wrong password")
    assert not script.disturbed


async def test_digits_of_other_scripts_are_none(listener: FakeListener, script: Script) -> None:
    """Digits of other scripts in Unicode are no code."""
    assert await ended(listener, "hello" + "\u0661" * 3) == ("reject", "wrong password")
    assert await ended(listener, b"hello12345\xb2") == ("reject", "wrong password")
    assert not script.disturbed


async def test_a_provider_without_codes(listener: FakeListener, areas: Areas) -> None:
    """Without codes at the provider nothing is split off, and the password is wrong."""
    script = Script(takes_codes=False)
    await script.attach(areas)
    assert await ended(listener, "hello123456") == ("reject", "wrong password")
    assert (script.disturbed, script.looked_up) == (False, [])


async def test_no_provider(listener: FakeListener, areas: Areas, script: Script) -> None:
    """Without a provider nothing is split off either."""
    await areas.providers.delete(areas.domain)
    assert await ended(listener, "hello123456") == ("reject", "wrong password")


@pytest.mark.parametrize("enrolment", Enrolment)
async def test_no_code_is_split_off_for_an_unenrolled_user(
    listener: FakeListener, areas: Areas, enrolment: Enrolment
) -> None:
    """Nothing is split off once the provider has reported that a user has no second factor; before that, and with an
    unknown enrolment, a code is."""
    script = Script(enrolment=enrolment)
    await script.attach(areas)
    script.right = {"000001", "000002"}
    assert await ended(listener, "hello000001") == ("accept", "")
    await areas.second.enrolments.find_out(attached(areas), areas.tenant, (areas.domain, "ann"), "ann")
    expected = ("reject", "wrong password") if enrolment is Enrolment.NOT_ENROLLED else ("accept", "")
    assert await ended(listener, "hello000002") == expected


async def test_an_unknown_user_is_not_sent_to_the_provider(listener: FakeListener, script: Script) -> None:
    """An unknown user is rejected, and the provider does not learn the name."""
    assert await ended(listener, "hello123456", "nobody") == ("reject", "unknown user")
    assert (script.disturbed, script.looked_up) == (False, [])


async def test_chap_carries_no_code(listener: FakeListener, script: Script) -> None:
    """A CHAP response for password and code together is a wrong password."""
    decision = await listener.decide(listener.login(chap("ann", "hello123456")))
    assert (decision.applied, decision.reason) == ("reject", "wrong password")
    assert not script.disturbed


@pytest.mark.parametrize("code", ["123456", "000000"])
async def test_monitor(listener: FakeListener, areas: Areas, code: str) -> None:
    """In monitor mode a code after the password, right or wrong, is neither checked nor used, and the login is
    accepted."""
    script = Script()
    await script.attach(areas, mode=Mode.MONITOR)
    assert (await ended(listener, f"hello{code}"))[0] == "accept"
    assert await ended(listener, f"wrong{code}") == ("reject", "wrong password")
    await until(lambda: bool(script.looked_up))
    assert not script.disturbed
