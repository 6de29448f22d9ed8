"""Tests of the external first factor of a domain: its configuration, its display, its checks, and its replacement."""

import json
from dataclasses import replace

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.decision import refusal
from sallyport.areas.login.first import repo
from sallyport.areas.login.first.repo import FactorRow
from sallyport.areas.login.first.service import RESTART_S, RETIRE_S
from sallyport.areas.login.first.settings import KINDS, FirstFactorSettings
from sallyport.areas.login.login import Reason
from sallyport.base.errors import Invalid
from sallyport.base.secret import Secret
from sallyport.outgoing.egress import Egress
from sallyport.radius.attributes import CLASS, REPLY_MESSAGE, push_attribute
from sallyport.store.vault import Vault
from tests.areas.login.conftest import FakeListener
from tests.areas.login.first.conftest import Book
from tests.packets import pap


async def test_it_is_asked_once_for_each_login(listener: FakeListener, listed: Domain, book: Book) -> None:
    """The external first factor is asked once for each login. The domain's endpoint users are not used."""
    assert await listener.decided(pap("ann", "s3cret")) == ("accept", Reason.NONE, "ann", listed.id)
    assert await listener.decided(pap("ann", "hello")) == ("reject", Reason.WRONG_PASSWORD, "ann", listed.id)
    assert book.asked == ["ann", "ann"]


async def test_attributes_of_the_first_factor_join_the_reply(listener: FakeListener, listed: Domain) -> None:
    """The attributes that the first factor returned are added to the Accept and to the Reject."""
    login = listener.login(pap("ann", "s3cret"))
    await listener.decide(login)
    assert login.attributes == push_attribute(CLASS, b"staff")
    login = listener.login(pap("ann", "wrong"))
    await listener.decide(login)
    assert refusal(login, Reason.WRONG_PASSWORD) == push_attribute(REPLY_MESSAGE, b"no")


async def test_an_unreachable_first_factor_rejects(listener: FakeListener, listed: Domain, book: Book) -> None:
    """If the first factor is unreachable, the login is rejected with its own reason."""
    await listener.areas.first_settings.set(listed, FirstFactor.LDAP, {"ldap": {"password": "s3cret", "away": True}})
    assert (await listener.decided(pap("ann", "s3cret")))[:2] == ("reject", Reason.FIRST_FACTOR_UNREACHABLE)


async def test_a_change_holds_for_the_next_login(listener: FakeListener, listed: Domain) -> None:
    """A change applies to the next login.

    This includes a change back to the endpoint users, whose passwords are still stored.
    """
    first = listener.areas.first_settings
    await first.set(listed, FirstFactor.LDAP, {"ldap": {"password": "other"}})
    assert (await listener.decided(pap("ann", "s3cret")))[:2] == ("reject", Reason.WRONG_PASSWORD)
    assert (await listener.decided(pap("ann", "other")))[0] == "accept"
    await first.set(listener.areas.domains.table.by_id[listed.id], FirstFactor.LOCAL, {})
    assert (await listener.decided(pap("ann", "hello")))[0] == "accept"
    await first.set(listener.areas.domains.table.by_id[listed.id], FirstFactor.LDAP, {})
    assert (await listener.decided(pap("ann", "other")))[0] == "accept"


async def test_a_checker_that_was_replaced_ends(
    listener: FakeListener, listed: Domain, book: Book, mock_clock: trio.testing.MockClock
) -> None:
    """A replaced checker runs until the time limit of its logins has passed. After that each domain has one checker."""
    for password in ("a", "b", "c"):
        await listener.areas.first_settings.set(listed, FirstFactor.LDAP, {"ldap": {"password": password}})
        await listener.decided(pap("ann", password))
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == ["corp"] * 3
    mock_clock.jump(RETIRE_S + 1)
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == ["corp"]


async def test_a_checker_that_is_no_longer_used_ends(
    listener: FakeListener, listed: Domain, book: Book, mock_clock: trio.testing.MockClock
) -> None:
    """If the domain selects another first factor, the checker ends without another login.

    If the same first factor is set again, the checker stays.
    """
    await listener.decided(pap("ann", "s3cret"))
    for factor, running in ((FirstFactor.LDAP, ["corp"]), (FirstFactor.LOCAL, [])):
        await listener.areas.first_settings.set(listed, factor, {})
        await trio.testing.wait_all_tasks_blocked()
        assert book.running == ["corp"]
        mock_clock.jump(RETIRE_S + 1)
        await trio.testing.wait_all_tasks_blocked()
        assert book.running == running


async def test_the_shown_configuration_has_no_secret(listener: FakeListener, listed: Domain) -> None:
    """Secrets are not shown. A configuration that is missing or cannot be read is shown as empty."""
    first = listener.areas.first_settings
    assert first.shown(listed.id) == {"ldap": {"away": False}}
    assert first.shown(listed.id + 1) == {}


async def test_stored_fields_that_are_refused_now(listener: FakeListener, listed: Domain) -> None:
    """If an older version stored fields that are now refused, each login is rejected with its own reason."""
    fields = json.dumps({"password": "s3cret", "obsolete": "yes"}).encode()
    row = FactorRow(listed.id, "ldap", listener.areas.vault.seal(fields, repo.identity(listed.id, "ldap")), 1)
    await listener.areas.configuration.change(lambda tx: repo.save(tx, row))
    assert (await listener.decided(pap("ann", "s3cret")))[:2] == ("reject", Reason.FIRST_FACTOR_UNREADABLE)
    assert listener.areas.first_settings.shown(listed.id) == {"ldap": {}}


async def test_wrong_fields_are_named(listener: FakeListener, listed: Domain) -> None:
    """An error names the field and its kind of first factor, without the value.

    An unknown field is refused. Nothing is changed.
    """
    for values, field in (({}, "ldap.password"), ({"password": "x", "pasword": "topsecret"}, "ldap.password")):
        with pytest.raises(Invalid) as caught:
            await listener.areas.first_settings.set(listed, FirstFactor.LDAP, {"ldap": values})
        assert [each.field for each in caught.value.fields] == [field]
        assert "topsecret" not in repr(caught.value)
    assert (await listener.decided(pap("ann", "s3cret")))[0] == "accept"


async def test_a_kind_must_be_configured_to_be_chosen(listener: FakeListener, book: Book) -> None:
    """A kind without a configuration cannot be selected, because all logins would fail."""
    corp = listener.areas.domains.table.by_id[listener.areas.domain]
    with pytest.raises(Invalid, match="missing ldap"):
        await listener.areas.first_settings.set(corp, FirstFactor.LDAP, {})


async def test_a_store_of_another_key_is_noticed(listener: FakeListener, listed: Domain) -> None:
    """A configuration that was sealed with another master key is shown without its fields."""
    areas = listener.areas
    areas.first_settings._vault = Vault(Secret(bytes(31) + b"\1"))
    assert areas.first_settings.shown(listed.id) == {"ldap": {}}
    await areas.configuration.reload()


async def test_a_failed_checker_is_started_again(
    listener: FakeListener, listed: Domain, book: Book, mock_clock: trio.testing.MockClock
) -> None:
    """If the background work of a checker failed, the checker is started again after a pause. No admin has to act."""
    book.fails = True
    await listener.decided(pap("ann", "s3cret"))
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == []
    book.fails = False
    mock_clock.jump(RESTART_S + 1)
    await trio.testing.wait_all_tasks_blocked()
    assert (await listener.decided(pap("ann", "s3cret")))[0] == "accept"
    await trio.testing.wait_all_tasks_blocked()
    assert book.running == ["corp"]


async def test_servers_that_egress_denies_are_named(listener: FakeListener) -> None:
    """A server whose address the egress rules deny causes a warning. Names and allowed addresses cause none."""
    areas = listener.areas
    settings = FirstFactorSettings(
        areas.configuration,
        areas.vault,
        KINDS,
        lambda domain_id, tenant_id=None: replace(areas.login._first_host(domain_id, tenant_id), egress=Egress()),
        areas.clock,
        areas.rules.web_problem,
    )
    domain = areas.domains.table.by_id[areas.domain]
    servers = [{"host": host, "secret": "s3cret"} for host in ("192.0.2.1", "127.0.0.1", "localhost")]
    await settings.set(domain, FirstFactor.RADIUS, {"radius": {"servers": servers}})
    (warning,) = settings.egress_warnings(domain.id, FirstFactor.RADIUS)
    assert warning.startswith("servers.1: the setting egress does not allow this address")
    assert settings.egress_warnings(domain.id, FirstFactor.LOCAL) == []
