"""Tests of the enrolment of people from a directory or from the first factor."""

import pyotp
import pytest

from sallyport.areas.domains.domain import Domain, FirstFactor, Mode
from sallyport.areas.mfa.totp import Totp
from sallyport.areas.users.accounts.account import DIRECTORY, UserChange, UserQuery
from sallyport.areas.users.accounts.account import LOCAL as ADDED
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, NotFound
from tests.areas import Areas
from tests.areas.directory.world import imported, person
from tests.areas.login.conftest import FakeListener
from tests.packets import pap


async def enrolled(areas: Areas, name: str) -> str:
    """Enrol a person and confirm the seed. Return the name of the person's endpoint user."""
    made, _ = await areas.seeds.enrol(areas.domain, name)
    first = pyotp.TOTP(made.seed).at(areas.clock() // SECOND)
    assert (await areas.seeds.confirm(areas.domain, name, first)).right
    return made.user.name


async def sources(areas: Areas) -> dict[str, str]:
    """Return the source of each endpoint user but ann, by name."""
    found, _ = await areas.accounts.page(UserQuery(areas.domain, limit=100))
    return {each.name: each.source for each in found if each.name != "ann"}


@pytest.mark.parametrize("name", ["carl", "CARL", "carl@corp", "carlo"])
async def test_a_person_of_a_directory_enrols(areas: Areas, listed: Domain, name: str) -> None:
    """A person enrols by each name that a login may have. The seed belongs to the name that logins look for."""
    await imported(areas, person("carl", "uid: carlo"))
    assert await enrolled(areas, name) == "carl"
    assert await areas.seeds.seed(areas.domain, "carl") is not None
    assert await sources(areas) == {"carl": DIRECTORY}


async def test_an_enrolled_person_logs_in_by_password_and_code(listener: FakeListener, listed: Domain) -> None:
    """The first factor checks the password of the person. The person has no local password. The code is asked for."""
    areas = listener.areas
    await imported(areas, person("carl"))
    areas.kinds["totp"] = Totp
    await areas.providers.set(listed.id, "totp", {}, 60)
    await areas.domains.set_mode([listed.id], Mode.ENFORCE)
    assert (await listener.decided(pap("carl", "s3cret")))[:2] == ("reject", "not enrolled")
    made, _ = await areas.seeds.enrol(listed.id, "carl")
    app = pyotp.TOTP(made.seed)
    assert (await areas.seeds.confirm(listed.id, "carl", app.at(areas.clock() // SECOND))).right
    assert (await listener.decided(pap("carl", "s3cret")))[:2] == ("challenge", "second factor asked for")
    await areas.first_settings.set(areas.domains.table.by_id[listed.id], FirstFactor.LOCAL, {})
    assert (await listener.decided(pap("carl", "s3cret")))[:2] == ("reject", "wrong password")


async def test_a_person_of_the_first_factor_enrols(areas: Areas, listener: FakeListener, listed: Domain) -> None:
    """Without a synchronisation, the first factor is asked about the name."""
    assert await enrolled(areas, "dora") == "dora"


async def test_an_unknown_person_does_not_enrol(areas: Areas, listener: FakeListener, listed: Domain) -> None:
    """An unknown name makes no endpoint user."""
    with pytest.raises(NotFound, match="user not found"):
        await areas.seeds.enrol(areas.domain, "nobody")
    assert await sources(areas) == {}


async def test_a_first_factor_that_is_away(areas: Areas, listener: FakeListener, listed: Domain) -> None:
    """If the first factor cannot be asked, the message gives this reason instead of "not found"."""
    await areas.first_settings.set(listed, FirstFactor.LDAP, {"ldap": {"password": "s3cret", "away": True}})
    with pytest.raises(Conflict, match="first factor unreachable; to see the cause: sallyport domain check corp"):
        await areas.seeds.enrol(areas.domain, "dora")


async def test_a_name_of_two_people(areas: Areas, listed: Domain) -> None:
    """A name that two people of the directories have enrols neither of them."""
    await imported(areas, person("carl", "uid: sales") + person("dora", "uid: sales"))
    with pytest.raises(Conflict, match="several people"):
        await areas.seeds.enrol(areas.domain, "sales")


async def test_a_first_factor_without_a_look_up(areas: Areas) -> None:
    """A forwarding server knows its people itself, so any name can enrol."""
    domain = areas.domains.table.by_id[areas.domain]
    await areas.first_settings.set(domain, FirstFactor.NONE, {})
    assert await enrolled(areas, "dora") == "dora"


async def test_local_people_are_added_by_an_admin(areas: Areas) -> None:
    """With the first factor `local`, a name without a user is unknown."""
    with pytest.raises(NotFound):
        await areas.seeds.enrol(areas.domain, "dora")


async def test_an_enrolled_person_may_be_added(areas: Areas, listed: Domain) -> None:
    """An admin may add an enrolled person as a user. The person keeps the seed."""
    await imported(areas, person("carl"))
    await enrolled(areas, "carl")
    await areas.accounts.add(areas.domain, UserChange("carl", password=b"hello"))
    assert await sources(areas) == {"carl": ADDED}
    assert await areas.seeds.seed(areas.domain, "carl") is not None


async def test_the_seed_of_a_person_is_removed(areas: Areas, listed: Domain) -> None:
    """A seed is removed by each name of the person."""
    await imported(areas, person("carl", "uid: carlo"))
    await enrolled(areas, "carl")
    assert await areas.seeds.remove(areas.domain, "carlo")
    assert await areas.seeds.seed(areas.domain, "carl") is None
