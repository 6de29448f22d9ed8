"""Enrolment links: who needs one, how it is made and sent, and how it ends."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.factors.enrolment import service as service_module
from sallyport.areas.factors.enrolment.link import KEPT_US, MAX_WRONG, RETRY_US, NotEnrolled, Progress
from sallyport.areas.factors.enrolment.mailing import NOT_SENT, SUBJECT, Mailing, SendsMail
from sallyport.areas.factors.enrolment.service import EnrolmentLinks, Queued
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.membership import Action
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Forbidden, Invalid, NotFound, TooMany
from sallyport.web.scope import Caller, Role
from tests.areas import Areas, SetClock
from tests.areas.directory.world import group, imported, person
from tests.areas.factors.authenticator import ORIGIN, Authenticator
from tests.areas.factors.people import PASSWORD, Browser, running_site
from tests.areas.login.first.conftest import Book, kind
from tests.mail_server import mail_server
from tests.outgoing.test_mail import Bench

LIFE_US = 3600 * SECOND
PEOPLE = (
    person("bob", "mail: bob@corp.example")
    + person("carl", "mail: carl@corp.example")
    + person("dora")
    + person("eve", "mail: eve@corp.example")
    + group("staff", "uid=bob,ou=People,dc=x", "uid=carl,ou=People,dc=x", "uid=dora,ou=People,dc=x")
    + group("all", "cn=staff,dc=x", "uid=eve,ou=People,dc=x")
)


@dataclass
class Mails:
    """The mail of a service. It keeps the mails. refuse: the addresses that the server does not accept."""

    is_on: bool = True
    refuse: tuple[str, ...] = ()
    sent: list[tuple[int, str, str, str]] = field(default_factory=list)

    def send(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Keep a mail."""
        self.sent.append((tenant_id, to, subject, text))

    async def deliver(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Keep a mail, or refuse it."""
        if to in self.refuse:
            raise Conflict("it does not accept the recipient")
        self.send(tenant_id, to, subject, text)


@pytest.fixture
async def site(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas of a service with the site of people, and with the user ann."""
    async with running_site(tmp_path, clock) as areas:
        yield areas


@pytest.fixture
async def listed(site: Areas) -> Areas:
    """Return the areas of a domain whose people are those of a directory."""
    site.first_kinds[FirstFactor.LDAP] = kind(Book())
    domain = site.domains.table.by_id[site.domain]
    await site.first_settings.set(domain, FirstFactor.LDAP, {"ldap": {"password": PASSWORD}})
    await imported(site, PEOPLE)
    return site


def links_of(areas: Areas) -> EnrolmentLinks:
    """Return the links of a service."""
    return areas.app.me.links


def mailing(areas: Areas, mails: SendsMail) -> Mailing:
    """Return the queue of mails of a service."""
    return Mailing(areas.store, mails, areas.app.me.link_to, areas.domains.table.present, areas.clock, life_us=LIFE_US)


def link_in(text: str) -> str:
    """Return the link in a mail."""
    return next(word for word in text.split() if word.startswith(ORIGIN))


async def missing(areas: Areas, name: str = "", size: int = 100) -> list[NotEnrolled]:
    """Return the people without a factor."""
    found, _ = await links_of(areas).not_enrolled(areas.domain, name, 0, size)
    return found


async def progress(areas: Areas) -> list[tuple[str, int, int, int, int, int]]:
    """Return (group, total, queued, sent, used, failed) of each group."""
    shown: list[Progress] = await links_of(areas).progress(areas.domain)
    return [(each.group_name, each.total, each.queued, each.sent, each.used, each.failed) for each in shown]


# --- links ----------------------------------------------------------------------------------------------------------


async def test_a_link_is_bound_to_the_first_browser_that_posts(site: Areas) -> None:
    """A GET changes nothing. The second browser gets the page of a link that is not valid. So does the first one, after
    the link was used."""
    secret, _ = await links_of(site).make(Person(site.domain, "ann"))
    path = f"/me/enrol/{secret}"
    scanner, first, second = Browser(site), Browser(site), Browser(site)
    await scanner.get(path)
    assert "This link is for" not in scanner.page and scanner.status == 200
    assert "This link is for <strong>ann" in await first.post(path)
    assert "not valid" in await second.post(path) and second.status == 404
    assert "not valid" in await second.post(path, password=PASSWORD)
    assert "Add a passkey" in await first.post(path, password=PASSWORD)
    assert "not valid" in await first.post(path, password=PASSWORD)


@pytest.mark.parametrize("token", ["x", "x" * 43, "x" * 500, "%00", "..%2f"])
async def test_an_unknown_link(site: Areas, token: str) -> None:
    """A GET shows the same page for every link. A POST says that the link is not valid."""
    browser = Browser(site)
    await browser.get(f"/me/enrol/{token}")
    assert browser.status in (200, 404)
    await browser.post(f"/me/enrol/{token}", password=PASSWORD)
    assert browser.status == 404


async def test_a_link_expires_and_is_replaced(site: Areas) -> None:
    """Only the newest link of a person works, and not after its time."""
    ann = Person(site.domain, "Ann")
    old, _ = await links_of(site).make(ann)
    new, until = await links_of(site).make(Person(site.domain, "ANN"))
    assert until == site.clock() + LIFE_US
    assert await links_of(site).open(old, "b") is None
    assert await links_of(site).open(new, "b") is not None
    site.clock.now = until
    assert await links_of(site).open(new, "b") is None


async def test_wrong_passwords_end_a_link(site: Areas) -> None:
    """The link ends with the fifth wrong password. The password of another user is wrong too."""
    await site.add_user(site.domain, "bob", b"the password of bob")
    secret, _ = await links_of(site).make(Person(site.domain, "ann"))
    browser, path = Browser(site), f"/me/enrol/{secret}"
    await browser.post(path)
    for number in range(MAX_WRONG):
        password = "the password of bob" if number else "wrong"
        assert "name or the password is wrong" in await browser.post(path, password=password, user="bob")
    assert "not valid" in await browser.post(path, password=PASSWORD)


async def test_the_store_has_no_secret(site: Areas) -> None:
    """The store has the hash of a link."""
    secret, _ = await links_of(site).make(Person(site.domain, "ann"))
    rows = await site.store.read(lambda tx: tx.rows("select * from enrolment_links"))
    assert len(rows) == 1 and secret not in repr(rows)


async def test_a_restored_backup_has_no_open_links(site: Areas) -> None:
    """A link may have been used after the backup."""
    secret, _ = await links_of(site).make(Person(site.domain, "ann"))
    browser = Browser(site)
    await browser.open_link(f"/me/enrol/{secret}")
    assert "Add a passkey" in browser.page
    again, _ = await links_of(site).make(Person(site.domain, "ann"))
    await site.store.write(lambda tx: site.app.areas.void(tx, revoke_tokens=False))
    assert await links_of(site).open(again, "b") is None
    assert "Password" in await browser.get()


async def test_an_expired_link_is_deleted_after_a_week(site: Areas) -> None:
    """Until then, an operator sees it."""
    _, until = await links_of(site).make(Person(site.domain, "ann"))
    for at, left in ((until + KEPT_US - 1, 1), (until + KEPT_US, 0)):
        site.clock.now = at
        await links_of(site).purge(site.areas.clock())
        assert len(await site.store.read(lambda tx: tx.rows("select 1 from enrolment_links"))) == left


# --- people ---------------------------------------------------------------------------------------------------------


async def test_the_endpoint_users_without_a_factor(site: Areas) -> None:
    """A user with a passkey or an app is not listed, nor one without a password. The link's state is shown."""
    await site.add_user(site.domain, "Bob", b"x")
    await site.add_user(site.domain, "carl", b"x")
    await site.seeds.enrol(site.domain, "carl")
    secret, until = await links_of(site).make(Person(site.domain, "ann"))
    assert await missing(site) == [
        NotEnrolled("ann", "", "given", "", until), NotEnrolled("Bob", "", "", "", None),
        NotEnrolled("carl", "", "", "", None),
    ]  # fmt: skip
    browser = Browser(site)
    await browser.open_link(f"/me/enrol/{secret}")
    await browser.add_passkey(Authenticator())
    assert [each.user_name for each in await missing(site)] == ["Bob", "carl"]
    other = Browser(site)
    secret, _ = await links_of(site).make(Person(site.domain, "carl"))
    await other.open_link(f"/me/enrol/{secret}", "x")
    await other.add_app()
    assert [each.user_name for each in await missing(site)] == ["Bob"]
    found, total = await links_of(site).not_enrolled(site.domain, "", 1, 1)
    assert (found, total) == ([], 1)


async def test_the_endpoint_users_of_a_group(site: Areas) -> None:
    """The name of a group is compared without case. A group that does not exist is empty."""
    bob = await site.add_user(site.domain, "bob", b"x")
    staff = await site.groups.add(site.domain, Group("Staff"))
    await site.groups.assign_users(site.domain, staff, [bob], Action.ADD)
    assert [each.user_name for each in await missing(site, "staff")] == ["bob"]
    assert await missing(site, "nobody") == []


async def test_the_people_of_a_directory(listed: Areas) -> None:
    """They have mail addresses. The people of nested groups belong to a group. Disabled people are left out."""
    assert [(each.user_name, each.email) for each in await missing(listed)] == [
        ("bob", "bob@corp.example"), ("carl", "carl@corp.example"), ("dora", ""), ("eve", "eve@corp.example"),
    ]  # fmt: skip
    assert [each.user_name for each in await missing(listed, "STAFF")] == ["bob", "carl", "dora"]
    assert [each.user_name for each in await missing(listed, "all")] == ["bob", "carl", "dora", "eve"]


async def test_only_people_who_exist_get_links(listed: Areas) -> None:
    """The name is that of the directory. A mail needs an address."""
    assert await links_of(listed).person(listed.domain, "BOB") == Person(listed.domain, "bob")
    with pytest.raises(Conflict, match="no mail address"):
        await links_of(listed).mail(Person(listed.domain, "dora"))
    with pytest.raises(NotFound):
        await links_of(listed).mail(Person(99, "bob"))


@pytest.mark.parametrize(("role", "name"), [("admin", "ann"), ("admin", "ann@corp"), ("installation", "ANN")])
async def test_the_factors_of_an_administrator_need_the_role_admin(site: Areas, role: str, name: str) -> None:
    """An operator must not take over the account of an administrator."""
    tenant = None if role == "installation" else site.tenant
    await site.store.write(
        lambda tx: tx.execute(
            "insert into administrators (name, name_key, role, tenant_id, password, seed, created_at) "
            "values (:name, :name, :role, :t, :none, :none, 0)",
            name=name, role=role, t=tenant, none=b"",
        )
    )  # fmt: skip
    administrators = site.app.users.administrators
    operator, admin = (Caller(1, 1, 1, site.tenant, each, "x") for each in (Role.OPERATOR, Role.ADMIN))
    with pytest.raises(Forbidden):
        await administrators.check(site.domain, "ann", operator)
    await administrators.check(site.domain, "ann", admin)
    await administrators.check(site.domain, "bob", operator)


# --- mails ----------------------------------------------------------------------------------------------------------


async def test_the_people_of_a_group_get_mails(listed: Areas) -> None:
    """Each mail has its own link, which works. People without an address are counted. The progress is shown."""
    mails = Mails(refuse=("carl@corp.example",))
    queue, links = mailing(listed, mails), links_of(listed)
    assert await links.mail_group(listed.domain, "Staff", is_admin=True) == Queued(2, 1, 0, 0)
    assert await progress(listed) == [("Staff", 2, 2, 0, 0, 0)]
    while await queue.send_some():
        pass
    assert await progress(listed) == [("Staff", 2, 0, 1, 0, 1)]
    ((tenant, to, _, text),) = mails.sent
    assert (tenant, to) == (listed.tenant, "bob@corp.example") and "bob" in text and "corp" in text
    assert [(each.user_name, each.link, each.problem) for each in await missing(listed, "staff")] == [
        ("bob", "sent", ""), ("carl", "failed", "it does not accept the recipient"), ("dora", "", ""),
    ]  # fmt: skip
    secret = link_in(text).rpartition("/")[2]
    found = await links.open(secret, "b")
    assert found is not None and found.person == Person(listed.domain, "bob")
    assert await listed.store.write(lambda tx: links.use_in(tx, found, secret, "b", listed.clock()))
    assert not await listed.store.write(lambda tx: links.use_in(tx, found, secret, "b", listed.clock()))
    assert await progress(listed) == [("Staff", 2, 0, 1, 1, 1)]


async def test_an_operator_leaves_administrators_out(listed: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other people of the group get their mails."""
    await listed.store.write(
        lambda tx: tx.execute(
            "insert into identities (issuer, subject, name, role, tenant_id, member_of, created_at, signed_in_at) "
            "values ('i', 's', 'Bob@corp', 'admin', :t, '', 0, 0)", t=listed.tenant,
        )
    )  # fmt: skip
    assert await links_of(listed).mail_group(listed.domain, "all", is_admin=False) == Queued(2, 1, 1, 0)
    assert await links_of(listed).mail_group(listed.domain, "all", is_admin=True) == Queued(1, 1, 0, 2)


async def test_an_unknown_group(listed: Areas) -> None:
    """The error names the field."""
    with pytest.raises(Invalid, match="invalid groupName"):
        await links_of(listed).mail_group(listed.domain, "nobody", is_admin=True)


async def test_an_interrupted_mail_is_sent_again_with_another_link(listed: Areas) -> None:
    """If the service stops while it sends, the link may have arrived or not. After ten minutes, a new one is sent."""
    mails, links = Mails(), links_of(listed)
    await links.mail(Person(listed.domain, "bob"))
    stopped = Mails(refuse=("bob@corp.example",))

    class Stop(Exception):
        pass

    async def stop(*_: object) -> None:
        raise Stop

    stopped.deliver = stop  # type: ignore[method-assign]
    with pytest.raises(Stop):
        await mailing(listed, stopped).send_some()
    assert not await mailing(listed, mails).send_some()
    listed.clock.now += RETRY_US
    assert await mailing(listed, mails).send_some() and not await mailing(listed, mails).send_some()
    assert len(mails.sent) == 1
    assert await links.open(link_in(mails.sent[0][3]).rpartition("/")[2], "b") is not None


async def test_domains_take_turns(listed: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large group of one domain does not delay a mail of another domain."""
    other = await listed.domains.add(listed.tenant, "branch", first_factor=FirstFactor.LDAP)
    many = "".join(person(f"p{number}", f"mail: p{number}@corp.example") for number in range(15))
    await imported(listed, many + group("many", *(f"uid=p{number},ou=People,dc=x" for number in range(15))))
    await links_of(listed).mail_group(listed.domain, "many", is_admin=True)
    await listed.store.write(
        lambda tx: tx.execute(
            "insert into enrolment_links (domain_id, user_key, user_name, group_name, address, state, made_at, "
            "expires_at) values (:d, 'zoe', 'zoe', '', 'zoe@x.example', 'queued', 0, :until)",
            d=other, until=listed.clock() + LIFE_US,
        )
    )  # fmt: skip
    mails = Mails()
    await mailing(listed, mails).send_some()
    assert "zoe@x.example" in [to for _, to, _, _ in mails.sent] and len(mails.sent) == 11


async def test_a_domain_has_a_limit_of_links(site: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator cannot fill the store."""
    monkeypatch.setattr(service_module, "MAX_LINKS", 1)
    await links_of(site).make(Person(site.domain, "ann"))
    with pytest.raises(Conflict, match="enrolment links"):
        await links_of(site).make(Person(site.domain, "bob"))


async def test_a_repeated_request_sends_no_second_mail(listed: Areas) -> None:
    """A person with a valid link by mail gets no other one with the group. After its time, or if the mail has failed,
    the person gets a new one. A single person gets at most one in a minute."""
    mails, links = Mails(refuse=("carl@corp.example",)), links_of(listed)
    await links.mail_group(listed.domain, "staff", is_admin=True)
    assert await links.mail_group(listed.domain, "staff", is_admin=True) == Queued(0, 1, 0, 2)
    while await mailing(listed, mails).send_some():
        pass
    assert await links.mail_group(listed.domain, "staff", is_admin=True) == Queued(1, 1, 0, 1)
    listed.clock.now += LIFE_US
    assert (await links.mail_group(listed.domain, "staff", is_admin=True)).queued == 1
    with pytest.raises(TooMany):
        await links.mail(Person(listed.domain, "bob"))
    listed.clock.now += 60 * SECOND
    assert await links.mail(Person(listed.domain, "bob")) == "bob@corp.example"


async def test_a_real_smtp_server_gets_the_mail(listed: Areas, tmp_path: Path) -> None:
    """The link in the received mail works. The reason of a refusal is for the operator of the installation, so the
    domain's operators see another text."""
    await imported(listed, person("zoe", "mail: refused@example.com"))
    with mail_server() as server:
        queue = mailing(listed, Bench(tmp_path).mail(server.port))
        for name in ("bob", "zoe"):
            await links_of(listed).mail(Person(listed.domain, name))
        while await queue.send_some():
            pass
        received = await trio.to_thread.run_sync(server.received)
    assert received.recipients == ["bob@corp.example"] and received.message["Subject"] == SUBJECT
    assert "Hello bob" in received.text
    browser = Browser(listed)
    await browser.open_link(link_in(received.text))
    assert "Add a passkey" in browser.page
    problems = {each.user_name: each.problem for each in await missing(listed)}
    assert problems["zoe"] == NOT_SENT
