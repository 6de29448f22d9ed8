"""Logins at remembered stations: which are remembered, which are asked all the same, and what monitor mode says."""

import pytest

from sallyport.areas.domains.domain import Mode
from sallyport.areas.domains.service import Update
from sallyport.areas.factors.denials import Denial, DeniedAt
from sallyport.areas.login.login import Found, Login
from sallyport.areas.login.second.session import Asked, new_session
from sallyport.areas.mfa.provider import Outcome, Strength
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.users.accounts.account import UserChange
from sallyport.radius.attributes import STATE, pull_attributes
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.areas.login.second.scripted import Script, attached
from tests.areas.login.second.test_monitor import looked_up
from tests.packets import attributes, pap

WIRELESS, VIRTUAL = (19).to_bytes(4), (5).to_bytes(4)
LAPTOP = b"00-1A-2B-3C-4D-5E"


def at(station: bytes = LAPTOP, medium: bytes = WIRELESS) -> bytes:
    """Return the attributes of a station at an access point."""
    return attributes(CALLING_STATION_ID=station, NAS_PORT_TYPE=medium)


@pytest.fixture
async def script(areas: Areas, listener: FakeListener) -> Script:
    """Return the script of a strong provider that asks for codes, in a domain that remembers stations for a day."""
    script = Script(begins=Outcome.CODE, strength=Strength.TWO_CHANNELS, strongest=Strength.TWO_CHANNELS)
    script.right = {f"12345{number}" for number in range(10)}
    await script.attach(areas)
    await remember(areas, 24)
    return script


async def remember(areas: Areas, hours: int) -> None:
    """Set the hours of the domain."""
    await areas.domains.update(areas.domain, Update(settings={"remember_h": hours}))


async def prove(listener: FakeListener, script: Script, body: bytes, *, signed: bool = True) -> Login:
    """Log in with a code."""
    first = await asks(listener, body, signed=signed)
    body += attributes(STATE=dict(pull_attributes(first.attributes))[STATE])
    return await accepted(listener, body, password=sorted(script.right)[0], signed=signed)


async def asks(listener: FakeListener, body: bytes, *, user: str = "ann", signed: bool = True) -> Login:
    """Log in. The user must be asked."""
    login = listener.login(pap(user, "hello", body, signed=signed))
    assert (await listener.decide(login)).applied == "challenge"
    return login


async def accepted(listener: FakeListener, body: bytes, *, password: str = "hello", signed: bool = True) -> Login:  # noqa: S107
    """Log in. The login must be accepted."""
    login = listener.login(pap("ann", password, body, signed=signed))
    assert (await listener.decide(login)).applied == "accept"
    return login


async def test_the_user_is_not_asked_again(listener: FakeListener, areas: Areas, script: Script) -> None:
    """The notation of the address does not matter. The event has the factor, and says since when."""
    proved = await prove(listener, script, at())
    assert (proved.factor, proved.approved) == ("local+scripted", True)
    areas.clock.pass_by(3600)
    login = await accepted(listener, at(b"001a.2b3c.4d5e"))
    assert (login.factor, login.approved) == ("local+remembered", False)
    assert login.detail == "remembered station: the user proved the second factor at 2026-01-01T00:00:00Z"
    assert len(script.started) == 1
    areas.clock.pass_by(23 * 3600)
    await asks(listener, at())


async def test_the_password_is_checked(listener: FakeListener, areas: Areas, script: Script) -> None:
    """A wrong password is refused at a remembered station too."""
    await prove(listener, script, at())
    login = listener.login(pap("ann", "wrong", at()))
    decision = await listener.decide(login)
    assert (decision.applied, decision.reason) == ("reject", "wrong password")


@pytest.mark.parametrize(
    "body",
    [
        at(b"198.51.100.7"),
        at(b"DA-A1-19-00-00-01"),
        at(b"01-1A-2B-3C-4D-5E"),
        at(b"00-00-00-00-00-00"),
        at(medium=VIRTUAL),
        attributes(CALLING_STATION_ID=LAPTOP),
        attributes(NAS_PORT_TYPE=WIRELESS),
    ],
    ids=["an address", "a random MAC", "a group", "zeros", "a VPN", "no medium", "no station"],
)
async def test_what_is_no_station(listener: FakeListener, script: Script, body: bytes) -> None:
    """An IP address, a made-up MAC address, and one that no switch or access point has sent are never remembered."""
    await prove(listener, script, body)
    await asks(listener, body)


async def test_an_unsigned_request(listener: FakeListener, areas: Areas, script: Script) -> None:
    """It remembers no station, and a copied address in one is asked."""
    await prove(listener, script, at(), signed=False)
    await asks(listener, at())
    await prove(listener, script, at())
    await asks(listener, at(), signed=False)
    await accepted(listener, at())


async def test_a_weak_factor(listener: FakeListener, areas: Areas, script: Script) -> None:
    """A code that can be relayed remembers nothing."""
    script.strength = Strength.ANY
    await prove(listener, script, at())
    await asks(listener, at())


async def test_another_user_and_another_station(listener: FakeListener, areas: Areas, script: Script) -> None:
    """A remembered station of ann is none of bob, and ann is asked at another one."""
    await areas.add_user(areas.domain, "bob", b"hello")
    await prove(listener, script, at())
    await asks(listener, at(), user="bob")
    await asks(listener, at(b"00-1A-2B-3C-4D-5F"))


async def test_a_domain_that_remembers_nothing(listener: FakeListener, areas: Areas, script: Script) -> None:
    """Without the setting, no station is stored. If an admin clears it, the stored ones do not count."""
    await prove(listener, script, at())
    await remember(areas, 0)
    await asks(listener, at())
    await prove(listener, script, at(b"00-1A-2B-3C-4D-5F"))
    await remember(areas, 24)
    await asks(listener, at(b"00-1A-2B-3C-4D-5F"))


async def test_a_rule_that_demands_a_stronger_factor(listener: FakeListener, areas: Areas, script: Script) -> None:
    """A remembered station satisfies `two_channels`, and never `phishing_resistant`."""
    script.strength = script.strongest = Strength.PHISHING_RESISTANT
    await script.attach(areas)
    await prove(listener, script, at())
    for strength, expected in (("two_channels", accepted), ("phishing_resistant", asks)):
        fields = {"name": strength, "action": "mfa_required", "users": ["ann"], "strength": strength, "priority": 1}
        number = await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
        await expected(listener, at())
        await areas.rules.delete(areas.domain, [number])


async def test_a_new_password(listener: FakeListener, areas: Areas, script: Script) -> None:
    """After a change of the password, the user is asked, also if the former password is set again."""
    await prove(listener, script, at())
    user = await areas.users.load(areas.domain, "ann")
    assert user is not None
    for password in (b"another", b"hello"):
        await areas.accounts.update(areas.domain, user.id, UserChange("ann", password=password))
    await asks(listener, at())


async def test_a_time_of_the_directory(listener: FakeListener, areas: Areas, script: Script) -> None:
    """The time that a directory gives for the password is part of a station, and survives a challenge."""
    login = await asks(listener, at())
    login.found = Found(password_at="133450000000000000")
    domain = areas.domains.table.present(areas.domain)
    session = new_session(login, domain, attached(areas), Asked(0, "stamp", "ldap"), b"")
    assert session.found.password_at == "133450000000000000"


async def test_not_me(listener: FakeListener, areas: Areas, script: Script) -> None:
    """After "not me", no login is accepted without a prompt, and no prompt is sent for some minutes. Then the user is
    asked."""
    await prove(listener, script, at())
    await areas.app.factors.denials.deny(Denial(areas.domain, "ann", DeniedAt.OWN_PAGES))
    assert (await listener.decide(listener.login(pap("ann", "hello", at())))).applied == "reject"
    areas.clock.pass_by(601)
    await asks(listener, at())


async def test_a_code_after_the_password_is_checked(listener: FakeListener, areas: Areas, script: Script) -> None:
    """If the user types a code without being asked, the code decides."""
    await prove(listener, script, at())
    decision = await listener.decide(listener.login(pap("ann", "hello000000", at())))
    assert (decision.applied, decision.reason) == ("reject", "wrong code")


async def test_monitor_mode_says_what_it_would_do(listener: FakeListener, areas: Areas, script: Script) -> None:
    """The first login would be asked, and the next ones would not. Nothing is stored, and no user is disturbed."""
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    await listener.decide(listener.login(pap("ann", "hello", at())))
    await looked_up(areas, script)
    first = listener.login(pap("ann", "hello", at()))
    assert (await listener.decide(first)).would_have_been == "challenge"
    assert first.detail == ("after a strong second factor, the station would be remembered until 2026-01-02T00:00:00Z")
    areas.clock.pass_by(60)
    later = listener.login(pap("ann", "hello", at()))
    assert (await listener.decide(later)).would_have_been == "accept"
    assert later.detail == "the station would have been remembered since 2026-01-01T00:00:00Z"
    other = listener.login(pap("ann", "hello", at(b"198.51.100.7")))
    assert (await listener.decide(other)).would_have_been == "challenge"
    assert other.detail == "" and not script.disturbed
    areas.clock.pass_by(24 * 3600)
    assert (await listener.decide(listener.login(pap("ann", "hello", at())))).would_have_been == "challenge"
    assert (await areas.app.factors.remembered.page(areas.domain, "", 0, 10))[1] == 0
