"""Tests of logins that wait while their domain is removed. Each is rejected, whatever the user then does."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from sallyport.areas.domains.domain import Fallback, FirstFactor, Mode
from sallyport.areas.events.event import EventQuery
from sallyport.areas.events.service import Events
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_REJECT
from tests.areas import Areas, clock
from tests.areas.login.first.conftest import Book, book
from tests.areas.login.listen.conftest import Wire, areas
from tests.areas.login.listen.second import a_login, answer, exchange, prompted, script, typed, wire
from tests.areas.login.second.scripted import NAME, Script
from tests.waiting import until

__all__ = ["areas", "book", "clock", "script", "wire"]

REASON = "the domain was removed meanwhile"
ANN = "ann@branch.example"


@pytest.fixture
async def branch(wire: Wire, script: Script) -> int:
    """Return a domain with the user ann and the provider.

    The domain enforces, its fallback allows, and it is not the default domain of any RADIUS client.
    """
    areas = wire.areas
    domain_id = await areas.domains.add(
        areas.tenant, "branch", realms=["branch.example"], mode=Mode.ENFORCE, fallback=Fallback.ALLOW
    )
    await areas.add_user(domain_id, "ann", b"hello")
    await areas.providers.set(domain_id, NAME, {}, 60)
    return domain_id


async def reasons(areas: Areas, domain_id: int) -> list[str]:
    """Return the reasons of a domain's logins, newest first."""
    return [each.reason for each in (await Events(areas.store).page(EventQuery(domain_id, limit=10)))[0]]


async def remove(areas: Areas, domain_id: int) -> None:
    """Remove the domain, and keep its rows."""
    await areas.removal.remove(domain_id)


async def remove_and_erase(areas: Areas, domain_id: int) -> None:
    """Remove the domain and its rows."""
    await areas.removal.remove(domain_id)
    await areas.removal.erase()


REMOVALS = pytest.mark.parametrize("removal", [remove, remove_and_erase], ids=["marked", "erased"])
Removal = Callable[[Areas, int], Awaitable[None]]


@REMOVALS
@pytest.mark.parametrize("outcome", [Outcome.APPROVED, Outcome.DENIED])
async def test_a_prompt(wire: Wire, script: Script, branch: int, removal: Removal, outcome: Outcome) -> None:
    """An approval after the removal is rejected."""
    login = a_login(user=ANN)
    wire.put(login)
    await prompted(script)
    await removal(wire.areas, branch)
    script.answer(0, outcome)
    assert (await answer(wire, login))[0] == ACCESS_REJECT
    assert await reasons(wire.areas, branch) == [REASON]


@REMOVALS
@pytest.mark.parametrize("rule", [None, {"name": "all", "action": "allow", "everyone": True}], ids=["factor", "allow"])
async def test_a_question_to_a_directory(
    wire: Wire, book: Book, branch: int, removal: Removal, rule: dict[str, object] | None
) -> None:
    """A right password after the removal is rejected, even if the fallback or a rule would allow the login."""
    areas, book.gate = wire.areas, trio.Event()
    if rule is not None:
        await areas.rules.add(branch, RuleFields.model_validate(rule))
    await areas.first_settings.set(
        areas.domains.table.present(branch), FirstFactor.LDAP, {"ldap": {"password": "hello"}}
    )
    login = a_login(user=ANN)
    wire.put(login)
    await until(lambda: book.asked == ["ann"])
    await removal(areas, branch)
    book.gate.set()
    assert (await answer(wire, login))[0] == ACCESS_REJECT
    assert await reasons(areas, branch) == [REASON]


@REMOVALS
async def test_a_code(wire: Wire, script: Script, branch: int, removal: Removal) -> None:
    """If the domain is removed, the right code of an earlier challenge is rejected because the realm is unknown."""
    script.begins = Outcome.CODE
    _, challenge = await exchange(wire, a_login(user=ANN))
    await removal(wire.areas, branch)
    code, _ = await exchange(wire, typed("123456", challenge[STATE], user=ANN))
    assert code == ACCESS_REJECT
    assert await reasons(wire.areas, wire.areas.domain) == ["unknown realm"]
    assert script.verified == []
