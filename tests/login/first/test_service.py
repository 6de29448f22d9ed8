"""A domain's first factor that asks somebody else: set, shown, asked, replaced."""

import json

import pytest
import trio
import trio.testing

from sallyport.base.errors import Invalid, SecretError
from sallyport.base.secret import Secret
from sallyport.domains.domain import Domain, FirstFactor
from sallyport.login.decision import refusal
from sallyport.login.first import repo
from sallyport.login.first.repo import FactorRow
from sallyport.login.first.service import RESTART_S, RETIRE_S
from sallyport.login.login import Reason
from sallyport.radius.attributes import CLASS, REPLY_MESSAGE, push_attribute
from sallyport.store.vault import Vault
from tests.login.conftest import Desk
from tests.login.first.conftest import Book
from tests.packets import pap


async def test_it_is_asked_once_for_each_login(desk: Desk, listed: Domain, book: Book) -> None:
    """Its word is the first factor, and the domain's endpoint users count for nothing."""
    assert await desk.decided(pap("ann", "s3cret")) == ("accept", Reason.NONE, "ann", listed.id)
    assert await desk.decided(pap("ann", "hello")) == ("reject", Reason.WRONG_PASSWORD, "ann", listed.id)
    assert book.asked == ["ann", "ann"]


async def test_what_it_found_goes_to_the_answer(desk: Desk, listed: Domain) -> None:
    """Attributes of the Accept and of the Reject, and groups for the rules, whose attributes go before."""
    login = desk.login(pap("ann", "s3cret"))
    await desk.decide(login)
    assert login.attributes == push_attribute(CLASS, b"staff")
    login = desk.login(pap("ann", "wrong"))
    await desk.decide(login)
    assert refusal(login, Reason.WRONG_PASSWORD) == push_attribute(REPLY_MESSAGE, b"no")


async def test_nobody_is_let_in_while_it_is_away(desk: Desk, listed: Domain, book: Book) -> None:
    """That is a reason of its own, and a reject."""
    await desk.areas.first_settings.set(listed, FirstFactor.LDAP, {"ldap": {"password": "s3cret", "away": True}})
    assert (await desk.decided(pap("ann", "s3cret")))[:2] == ("reject", Reason.FIRST_FACTOR_UNREACHABLE)


async def test_a_change_holds_for_the_next_login(desk: Desk, listed: Domain) -> None:
    """A new password, and back to the endpoint users, whose passwords were there all the time."""
    first = desk.areas.first_settings
    await first.set(listed, FirstFactor.LDAP, {"ldap": {"password": "other"}})
    assert (await desk.decided(pap("ann", "s3cret")))[:2] == ("reject", Reason.WRONG_PASSWORD)
    assert (await desk.decided(pap("ann", "other")))[0] == "accept"
    await first.set(desk.areas.domains.table.by_id[listed.id], FirstFactor.LOCAL, {})
    assert (await desk.decided(pap("ann", "hello")))[0] == "accept"
    await first.set(desk.areas.domains.table.by_id[listed.id], FirstFactor.LDAP, {})
    assert (await desk.decided(pap("ann", "other")))[0] == "accept"


async def test_a_checker_that_was_replaced_ends(
    desk: Desk, listed: Domain, book: Book, mock_clock: trio.testing.MockClock
) -> None:
    """Not before the logins that began with it can be over; one domain has one at a time after that."""
    for password in ("a", "b", "c"):
        await desk.areas.first_settings.set(listed, FirstFactor.LDAP, {"ldap": {"password": password}})
        await desk.decided(pap("ann", password))
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == ["corp"] * 3
    mock_clock.jump(RETIRE_S + 1)
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == ["corp"]


async def test_a_checker_that_is_not_wanted_any_more_ends(
    desk: Desk, listed: Domain, book: Book, mock_clock: trio.testing.MockClock
) -> None:
    """Without a login: where the domain turns to another first factor; not where the same is set once more."""
    await desk.decided(pap("ann", "s3cret"))
    for factor, running in ((FirstFactor.LDAP, ["corp"]), (FirstFactor.LOCAL, [])):
        await desk.areas.first_settings.set(listed, factor, {})
        await trio.testing.wait_all_tasks_blocked()
        assert book.running == ["corp"]
        mock_clock.jump(RETIRE_S + 1)
        await trio.testing.wait_all_tasks_blocked()
        assert book.running == running


async def test_what_is_shown_has_no_secret(desk: Desk, listed: Domain) -> None:
    """And what is not there, or cannot be read, shows nothing."""
    first = desk.areas.first_settings
    assert first.shown(listed.id) == {"ldap": {"away": False}}
    assert first.shown(listed.id + 1) == {}


async def test_stored_fields_that_are_refused_now(desk: Desk, listed: Domain) -> None:
    """Fields that an older version stored, and this one refuses, reject each login with a reason of their own."""
    fields = json.dumps({"password": "s3cret", "obsolete": "yes"}).encode()
    row = FactorRow(listed.id, "ldap", desk.areas.vault.seal(fields, repo.identity(listed.id, "ldap")), 1)
    await desk.areas.configuration.change(lambda tx: repo.save(tx, row))
    assert (await desk.decided(pap("ann", "s3cret")))[:2] == ("reject", Reason.FIRST_FACTOR_UNREADABLE)
    assert desk.areas.first_settings.shown(listed.id) == {"ldap": {}}


async def test_wrong_fields_are_named(desk: Desk, listed: Domain) -> None:
    """Under the name of their kind, without their values; an unknown field is refused; nothing is changed."""
    for values, field in (({}, "ldap.password"), ({"password": "x", "pasword": "topsecret"}, "ldap")):
        with pytest.raises(Invalid) as caught:
            await desk.areas.first_settings.set(listed, FirstFactor.LDAP, {"ldap": values})
        assert [each.field for each in caught.value.fields] == [field]
        assert "topsecret" not in repr(caught.value)
    assert (await desk.decided(pap("ann", "s3cret")))[0] == "accept"


async def test_a_kind_must_be_configured_to_be_chosen(desk: Desk, book: Book) -> None:
    """Or nobody could log in."""
    corp = desk.areas.domains.table.by_id[desk.areas.domain]
    with pytest.raises(Invalid, match="missing ldap"):
        await desk.areas.first_settings.set(corp, FirstFactor.LDAP, {})


async def test_a_store_of_another_key_is_noticed(desk: Desk, listed: Domain) -> None:
    """Before it takes the place of this one."""
    areas = desk.areas
    await areas.store.read(areas.first_settings.check_key)
    areas.first_settings._vault = Vault(Secret(bytes(31) + b"\1"))
    with pytest.raises(SecretError):
        await areas.store.read(areas.first_settings.check_key)
    assert areas.first_settings.shown(listed.id) == {"ldap": {}}
    await areas.configuration.reload()


async def test_a_checker_that_fails_is_made_anew(
    desk: Desk, listed: Domain, book: Book, mock_clock: trio.testing.MockClock
) -> None:
    """What went wrong once in its background work keeps nobody out until an admin comes."""
    book.fails = True
    await desk.decided(pap("ann", "s3cret"))
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == []
    book.fails = False
    mock_clock.jump(RESTART_S + 1)
    await trio.testing.wait_all_tasks_blocked()
    assert (await desk.decided(pap("ann", "s3cret")))[0] == "accept"
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == ["corp"]
