"""Senders without an answer, and the registration of an unknown address."""

import re
from collections.abc import AsyncIterator, Sequence

import pytest
import trio

from sallyport.areas.login.listen.causes import UNKNOWN
from sallyport.console.pages.senders import hosts
from sallyport.settings.values import Address
from tests.console.test_logins import add
from tests.console.visitor import Site, Visitor, text_of
from tests.packets import access_request, attributes

ADDRESS = "192.0.2.77"
EVIL = b"<script>alert(1)</script>"


@pytest.fixture
async def root(site: Site) -> AsyncIterator[Visitor]:
    """Yield the browser of an installation administrator."""
    seed = await site.administrator("root")
    async with site.visitor() as visitor:
        assert (await visitor.sign_in_as("root", site.code(seed))).status_code == 303
        yield visitor


def hear(site: Site, name: bytes = b"switch-77") -> None:
    """Receive a request from an unknown address."""
    datagram = access_request(attributes(NAS_IDENTIFIER=name))
    site.areas.senders.note(ADDRESS, UNKNOWN, site.clock.now, datagram=datagram)


async def test_an_unknown_address_is_registered_in_one_step(site: Site, root: Visitor) -> None:
    """The list links to the form, which has the name of the device. Then the secret is shown, once, and the address
    is a RADIUS client.
    """
    hear(site)
    assert "no RADIUS client has this address" in text_of(await root.get("/senders"))
    form = f"/senders/register?address={ADDRESS}"
    assert f'<a href="{form}">register it as a RADIUS client' in (await root.get("/senders")).text
    assert 'value="switch-77"' in (await root.get(form)).text
    fields = {"address": ADDRESS, "name": "switch-77", "place": "1.1.1", "product": "", "secret": ""}
    page = await root.send("/senders/register", fields, page=form)
    (secret,) = re.findall(r'class="secret">(\w{32})<', page.text)
    client = site.areas.client_named("switch-77")
    assert client.secret.octets == secret.encode()
    assert page.headers["cache-control"] == "no-store"
    assert ADDRESS not in (await root.get("/senders")).text
    assert "client.add" in str(await site.areas.store.read(lambda tx: tx.rows("select action, actor from audit_trail")))


async def test_a_sender_is_listed_once_with_its_node(site: Site, root: Visitor) -> None:
    """A node lists its own senders from memory, and does not read the row that it has written for other nodes."""
    hear(site)
    with trio.move_on_after(0.5):
        await site.areas.login.node_senders.run()
    page = await root.get("/senders?column=address&column=packets&column=node")
    assert page.text.count(f"<code>{ADDRESS}</code>") + page.text.count(f">{ADDRESS}</a>") == 1
    assert f"{ADDRESS} 1 {site.areas.cluster.name}" in text_of(page)
    assert f"Node {site.areas.cluster.name}" in text_of(await root.get(f"/senders/sender?address={ADDRESS}"))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"address": "x"}, "must be an IP address or a network"),
        ({"name": ""}, "name"),
        ({"place": "9.9.9"}, "choose a domain"),
    ],
    ids=["address", "name", "place"],
)
async def test_a_wrong_value_is_named_at_its_field(site: Site, root: Visitor, fields: dict[str, str], why: str) -> None:
    """The form is shown again with the submitted values and the reason, and no client is made."""
    sent = {"address": ADDRESS, "name": "switch-77", "place": "1.1.1", "product": "", "secret": "", **fields}
    page = await root.send("/senders/register", sent)
    assert page.status_code == 400
    assert why in text_of(page)
    assert all(f'value="{value}"' in page.text for name, value in sent.items() if value and name in ("address", "name"))
    assert not site.areas.clients.of_tenant(site.areas.tenant)


async def test_a_secret_that_was_typed_is_not_shown(site: Site, root: Visitor) -> None:
    """Neither the answer nor the form after an error repeats a typed secret."""
    secret = "typed-by-the-admin-0123"
    sent = {"address": ADDRESS, "name": "a", "place": "1.1.1", "product": "", "secret": secret}
    assert secret not in (await root.send("/senders/register", {**sent, "name": ""})).text
    assert secret not in (await root.send("/senders/register", sent)).text


async def test_a_name_from_a_packet_is_text(site: Site, root: Visitor) -> None:
    """A NAS-Identifier with HTML in it does not become an element on any page."""
    hear(site, EVIL)
    for path in ("/senders", f"/senders/sender?address={ADDRESS}", f"/senders/register?address={ADDRESS}"):
        page = await root.get(path)
        assert EVIL.decode() not in page.text
        assert "&lt;script&gt;" in page.text


async def test_a_tenant_does_not_see_the_senders(site: Site, admin: Visitor) -> None:
    """Unknown addresses belong to no tenant, so an admin of a tenant gets neither the list nor the menu entry."""
    hear(site)
    assert (await admin.get("/senders")).status_code == 403
    assert "/senders" not in (await admin.get("/")).text


async def test_no_sender_says_what_to_expect(root: Visitor) -> None:
    """The empty list explains when a device appears."""
    assert "Every sender gets an answer" in text_of(await root.get("/senders"))


async def test_the_form_offers_the_first_domain_with_logins(site: Site, root: Visitor) -> None:
    """A new client gets the chosen domain as default, and the other domains of the tenant as well."""
    hear(site)
    busy = await site.areas.domains.add(site.areas.tenant, "branch")
    await add(site, "ann", domain=busy)
    form = await root.get(f"/senders/register?address={ADDRESS}")
    assert f'<option value="1.1.{busy}" selected>branch</option>' in form.text
    sent = {"address": ADDRESS, "name": "switch-77", "place": f"1.1.{busy}", "product": "", "secret": ""}
    page = await root.send("/senders/register", sent)
    client = site.areas.client_named("switch-77")
    assert [*client.domain_ids] == [busy, site.areas.domain]
    assert "Domain of its users branch" in text_of(page)
    assert f'href="/clients/{client.id}"' in page.text
    assert f'href="/logins?search={ADDRESS}">Watch its logins' in page.text


async def test_the_form_names_the_tenants_of_several(site: Site, root: Visitor) -> None:
    """The page of a client of another tenant has no link to its logins, because they belong to that tenant."""
    hear(site)
    other = await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(2, 3), "theirs")
    form = await root.get(f"/senders/register?address={ADDRESS}")
    assert f'<option value="2.3.{other}">theirs (organization 2, tenant 3)</option>' in form.text
    sent = {"address": ADDRESS, "name": "switch-77", "place": f"2.3.{other}", "product": "", "secret": ""}
    page = await root.send("/senders/register", sent)
    assert "Tenant organization 2, tenant 3" in text_of(page)
    assert "Watch its logins" not in page.text


async def test_the_logins_of_a_network_are_not_searched_by_its_address(site: Site, root: Visitor) -> None:
    """No login contains the text of a network, so the link leads to all logins."""
    sent = {"address": "192.0.2.0/24", "name": "floor", "place": "1.1.1", "product": "", "secret": ""}
    assert 'href="/logins">Watch its logins' in (await root.send("/senders/register", sent)).text


@pytest.mark.parametrize(
    ("bound", "shown"),
    [
        pytest.param(("192.0.2.1", "2001:db8::1", "192.0.2.1"), "192.0.2.1, 2001:db8::1", id="addresses"),
        pytest.param(("0.0.0.0",), "", id="all IPv4 addresses"),
        pytest.param(("::", "192.0.2.1"), "", id="all addresses"),
    ],
)
def test_the_address_of_the_service_is_shown_if_it_is_known(bound: Sequence[str], shown: str) -> None:
    """A service that listens at all addresses does not know the address that the device reaches."""
    assert hosts(tuple(Address(each, 1812) for each in bound)) == shown


async def test_an_address_without_logins_is_looked_for_among_the_senders(
    site: Site, root: Visitor, admin: Visitor
) -> None:
    """If the live log or the list of clients has no match, it says where the sender is seen; only an installation
    administrator gets the link."""
    hear(site)
    for path in ("/logins", "/clients"):
        own, tenants = await root.get(f"{path}?search={ADDRESS}"), await admin.get(f"{path}?search={ADDRESS}")
        assert f'href="/senders?search={ADDRESS}"' in own.text
        for page in (own, tenants):
            assert "An installation administrator sees it under Senders without an answer." in text_of(page)
        assert "/senders" not in tenants.text
