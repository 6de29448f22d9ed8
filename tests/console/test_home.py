"""The home page: what needs attention, and the chart of the last day."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest

from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind
from sallyport.areas.directory.repo import set_read_at
from sallyport.areas.domains.domain import Mode
from sallyport.areas.events.hours import HOUR
from sallyport.areas.login.listen.causes import GARBLED, UNKNOWN
from sallyport.areas.login.login import Reason
from sallyport.base.clock import SECOND, now_us
from sallyport.console.pages.attention import of_disk
from sallyport.console.pages.home import top_of
from sallyport.web.scope import Role
from tests.console.test_logins import add
from tests.console.visitor import Site, Visitor, text_of
from tests.packets import access_request, attributes
from tests.radius.eap.certificates import NOW, Authority

DAY_S = 86_400


async def device(site: Site, address: str, *, seen_s: int = 0, unsigned_s: int | None = None) -> None:
    """Store a device that has sent its last request, and its last unsigned request, so many seconds ago."""
    now = site.clock.now
    sql = (
        "insert into devices (domain_id, ip_address, client_ip, nas_identifier, device_name, device_type, "
        "device_type_certainty, nas_device_type, nas_port_type, first_seen, last_seen, request_count, registrations, "
        "evidence) values (:d, :ip, :ip, '', 'sw', '', '', '', '', 0, :seen, 1, 1, '') returning id"
    )
    values = {"d": site.areas.domain, "ip": address, "seen": now - seen_s * SECOND}
    number = await site.areas.store.write(lambda tx: tx.value(int, sql, **values))
    posture = (
        "insert into device_posture (device_id, signed, unsigned, unsigned_proxied, last_unsigned, challenges, "
        "challenge_answers) values (:id, 0, 1, 0, :at, 0, 0)"
    )
    if unsigned_s is not None:
        at = now - unsigned_s * SECOND
        await site.areas.store.write(lambda tx: tx.execute(posture, id=number, at=at))


def concerns(page: str) -> list[str]:
    """Return the facts that need attention, in their order."""
    (listed,) = re.findall(r'<ul class="attention">(.*?)</ul>', page, re.DOTALL) or [""]
    return [" ".join(re.sub(r"<[^>]*>", " ", each).split()) for each in re.findall(r"<li.*?</li>", listed, re.DOTALL)]


async def test_a_client_that_was_heard_and_is_silent_is_named(site: Site, admin: Visitor) -> None:
    """A client counts as silent a day after its last request. A client that never sent a request does not."""
    for name, address in (("vpn", "192.0.2.1/32"), ("floor", "198.51.100.0/24"), ("new", "192.0.2.3/32")):
        await site.areas.client(address, name=name)
    await device(site, "192.0.2.1", seen_s=DAY_S - 60)
    await device(site, "198.51.100.7", seen_s=DAY_S + 60)
    text = text_of(await admin.get("/"))
    assert "A RADIUS client has sent no request for a day: floor." in text
    site.clock.pass_by(120)
    assert "2 RADIUS clients have sent no request for a day: vpn, floor." in text_of(await admin.get("/"))


async def test_the_times_of_clients_are_read_once_a_minute(site: Site, admin: Visitor) -> None:
    """An open home page does not read the whole inventory each time it refreshes itself."""
    await site.areas.client("192.0.2.1/32", name="vpn")
    await admin.get("/")
    await device(site, "192.0.2.1", seen_s=DAY_S + 60)
    assert "sent no request for a day" not in text_of(await admin.get("/"))
    site.clock.pass_by(60)
    assert "sent no request for a day" in text_of(await admin.get("/"))


async def test_a_client_that_sends_unsigned_requests_is_named(site: Site, admin: Visitor) -> None:
    """A client is named for a day after its last request without Message-Authenticator."""
    await site.areas.client("192.0.2.1/32", name="old")
    await device(site, "192.0.2.1", unsigned_s=DAY_S - 60)
    home = await admin.get("/")
    assert "requests without Message-Authenticator, which can be forged (CVE-2024-3596): old." in text_of(home)
    (link,) = re.findall(r'href="(/clients[^"]*)">Show the clients', home.text)
    listed = await admin.get(unescape(link))
    assert re.search(r'data-title="Last unsigned request"><time datetime="', listed.text)
    site.clock.pass_by(120)
    assert "without Message-Authenticator" not in text_of(await admin.get("/"))


async def test_a_provider_that_failed_when_it_was_asked_is_named(site: Site, admin: Visitor) -> None:
    """No user has logged in. The check on the provider's page has shown the failure. A success removes the entry."""
    at, hook = f"/domains/{site.areas.domain}", {"chosen": "webhook", "url": "http://127.0.0.1:9/x", "secret": "s" * 32}
    assert (await admin.send(f"{at}/provider", hook, page=f"{at}/provider?provider=webhook")).status_code == 303
    assert "State not asked yet" in text_of(await admin.get(at))
    assert "MFA provider webhook" not in text_of(await admin.get("/"))
    await admin.send(f"{at}/provider/check")
    text = text_of(await admin.get("/"))
    assert re.search(r"The MFA provider webhook of corp fails: .+\. Since 2026-01-01", text), text
    assert "State fails since 2026-01-01" in text_of(await admin.get(at))
    await admin.send(f"{at}/provider", {"chosen": "totp"}, page=f"{at}/provider?provider=totp")
    await admin.send(f"{at}/provider/check")
    assert "MFA provider totp" not in text_of(await admin.get("/"))
    assert "State worked at 2026-01-01" in text_of(await admin.get(at))


async def test_old_data_of_a_cloud_directory_are_named(site: Site, admin: Visitor) -> None:
    """Home and the page of the directory say how old the data are, and what this means for logins."""
    areas = site.areas
    await areas.directory.directories.save([(areas.domain, DirectoryConfiguration("entra", DirectoryKind.GRAPH))])
    (entra,) = await areas.directory.directories.of_domain(areas.domain)
    page = f"/directories/{entra.id}?domain={areas.domain}"
    assert "never read completely; logins by certificate are refused" in text_of(await admin.get(page))
    await areas.store.write(lambda tx: set_read_at(tx, entra.id, areas.clock.now - (DAY_S - 60) * SECOND))
    named = "The data of entra in corp are too old for logins by certificate. Since 2025-12-31"
    assert named not in text_of(await admin.get("/"))
    site.clock.pass_by(120)
    assert named in text_of(await admin.get("/"))
    assert re.search(
        r"of 2025-12-31 00:01:00( UTC)? ?; logins by certificate are refused", text_of(await admin.get(page))
    )


async def test_a_failing_provider_is_named_with_the_number_of_logins(site: Site, admin: Visitor) -> None:
    """The logins of the last hours that a provider or a directory has not decided are counted by domain and reason."""
    for _ in range(2):
        await add(site, "ann", reason=Reason.UNREACHABLE)
    await add(site, "ann", reason=Reason.FIRST_FACTOR_UNREACHABLE, factor="")
    await add(site, "ann", reason=Reason.UNKNOWN_REALM, factor="")
    await add(site, "ann", reason=Reason.CIRCUIT_OPEN, at=site.clock.now - 3 * HOUR)
    page = await admin.get("/")
    found = [each for each in concerns(page.text) if "in the last hours" in each]
    assert found == [
        "1 login of corp in the last hours: first factor unreachable. Show the logins",
        "2 logins of corp in the last hours: provider unreachable. Show the logins",
    ]
    assert f"domain={site.areas.domain}&amp;reason=provider+unreachable" in page.text


ASKED_LDAP, ASKED_DUO = {"factor": "ldap", "first_us": 900}, {"factor": "ldap+duo", "second_us": 900}


@pytest.mark.parametrize(
    ("reason", "later", "later_reason", "is_over"),
    [
        pytest.param(Reason.FIRST_FACTOR_UNREACHABLE, ASKED_LDAP, Reason.NONE, True, id="directory answers"),
        pytest.param(Reason.FIRST_FACTOR_UNREACHABLE, {"factor": "ldap"}, Reason.LOCKED_OUT, False, id="locked out"),
        pytest.param(Reason.FIRST_FACTOR_UNREACHABLE, {"factor": "mac"}, Reason.NONE, False, id="station admitted"),
        pytest.param(Reason.FIRST_FACTOR_UNREACHABLE, ASKED_LDAP, Reason.METHOD_UNFIT, False, id="method not checked"),
        pytest.param(Reason.UNREACHABLE, ASKED_DUO, Reason.NONE, True, id="provider answers"),
        pytest.param(Reason.UNREACHABLE, ASKED_LDAP, Reason.NONE, False, id="provider is not asked"),
        pytest.param(Reason.UNREACHABLE, ASKED_DUO, Reason.TOO_MANY_PROMPTS, False, id="too many prompts"),
    ],
)
async def test_a_failure_that_is_over_is_not_one_of_now(
    site: Site, admin: Visitor, reason: Reason, later: dict[str, int | str], later_reason: Reason, is_over: bool
) -> None:
    """If a later login was answered by the factor that has failed, Home names the time of the last failure, last and
    without the mark of a failure."""
    await add(site, "ann", reason=reason, factor="")
    await add(site, "bob", reason=later_reason, **later)
    page = (await admin.get("/")).text
    (found,) = [each for each in concerns(page) if "in the last hours" in each]
    assert ("This is over: the last one was 2026-01-01 00:00:01 UTC" in found) is is_over
    assert ('<li class="over">' in page) is is_over
    assert (concerns(page)[-1] == found) is is_over


async def test_a_failure_is_over_once_a_check_of_the_provider_has_worked(site: Site, admin: Visitor) -> None:
    """After a repair of the provider, its check is enough: Home does not wait for the next login."""
    at = f"/domains/{site.areas.domain}"
    await admin.send(f"{at}/provider", {"chosen": "totp"}, page=f"{at}/provider?provider=totp")
    await add(site, "ann", reason=Reason.UNREACHABLE)
    assert "This is over" not in text_of(await admin.get("/"))
    site.clock.pass_by(1)
    await admin.send(f"{at}/provider/check")
    assert "This is over" in text_of(await admin.get("/"))


async def test_a_failed_import_and_an_expiring_authority_are_named(site: Site, tmp_path: Path) -> None:
    """A directory is named if its last import has failed, or if the certificate of its authority expires soon."""
    areas, site.clock.now = site.areas, now_us()
    settings = {
        "appUrl": "ldaps://dc.corp.example",
        "baseDN": "dc=corp",
        "caCertificate": Authority(tmp_path).file.read_text(),
    }
    await areas.directory.directories.save(
        [(areas.domain, DirectoryConfiguration("ad", DirectoryKind.LDAP, settings=settings))]
    )
    for kind, state, message in (("reading", "FAILED", "no route"), ("mapping", "DONE", "")):
        await job(site, kind, state, message)
    async with site.visitor() as admin:
        await admin.sign_in(await site.token())
        text = text_of(await admin.get("/"))
        assert "The authority's certificate of the directory ad in corp expires within a day." in text
        assert "The last import of ad in corp has failed: no route." in text
        await job(site, "reading", "DONE", "")
        assert "has failed" not in text_of(await admin.get("/"))


async def test_an_unreadable_key_of_a_server_certificate_is_named(site: Site, tmp_path: Path) -> None:
    """A server certificate whose key cannot be read is named, long before it expires."""
    areas, domain = site.areas, site.areas.domains.table.by_id[site.areas.domain]
    text = Authority(tmp_path).certificate("radius.corp.example", until=NOW + timedelta(days=300)).file.read_text()
    await areas.app.server_certificates.service.set(domain, "", text, text)
    told = "The server certificate of corp is not in use, because its key cannot be read. Set it again."
    async with site.visitor() as admin:
        await admin.sign_in(await site.token())
        assert told not in text_of(await admin.get("/"))
        sql = "update server_certificates set private_key = :none, changed_at = 1"
        await areas.store.write(lambda tx: tx.execute(sql, none=b"none"))
        await areas.configuration.reload()
        assert told in text_of(await admin.get("/"))


async def job(site: Site, kind: str, state: str, message: str) -> None:
    """Store an import of the only directory that has ended."""
    sql = (
        "insert into directory_jobs (domain_id, directory_id, kind, state, file_name, file, complete, source, message, "
        "created_at, ended_at) select domain_id, id, :kind, :state, '', '', 0, '', :message, :at, :at from directories"
    )
    values = {"kind": kind, "state": state, "message": message, "at": site.clock.now}
    await site.areas.store.write(lambda tx: tx.execute(sql, **values))


async def test_an_installation_administrator_sees_certificates_and_the_disk(site: Site) -> None:
    """Facts of the installation are shown to its administrator, after what makes logins fail now, and to no other
    person."""
    areas = site.areas
    await add(site, "ann", reason=Reason.UNREACHABLE)
    areas.senders.note("192.0.2.66", "unknown_client", site.clock.now)
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        own = concerns((await root.get("/")).text)
    async with site.visitor() as admin:
        await admin.sign_in(await site.token(Role.ADMIN))
        theirs = concerns((await admin.get("/")).text)
    told = "An address gets no answer, because it is no RADIUS client: 192.0.2.66. Register it"
    assert [each for each in own if each not in theirs] == [told]
    assert own.index(told) > 0


async def test_senders_without_an_answer_are_named(site: Site) -> None:
    """Home names them by address and NAS-Identifier, and tells unknown senders from refused ones."""
    for number, reason in ((66, UNKNOWN), (67, UNKNOWN), (68, GARBLED)):
        datagram = access_request(attributes(NAS_IDENTIFIER=b"<b>%d" % number))
        site.areas.senders.note(f"192.0.2.{number}", reason, site.clock.now, datagram=datagram)
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        page = (await root.get("/")).text
    assert "<b>6" not in page
    text = " ".join(concerns(page))
    assert "2 addresses get no answer, because they are no RADIUS clients: 192.0.2.6" in text
    assert "Packets from 192.0.2.68 (&lt;b&gt;68) are refused." in text


async def test_what_makes_logins_fail_comes_first(site: Site) -> None:
    """Then come devices without an answer, before the settings that are still missing."""
    await site.areas.client("192.0.2.1/32", name="vpn")
    await add(site, "ann", reason=Reason.UNREACHABLE)
    site.areas.senders.note("192.0.2.66", UNKNOWN, site.clock.now)
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        own = concerns((await root.get("/")).text)
    assert [each.split(" ")[0:3] for each in own[:3]] == [
        ["1", "login", "of"], ["An", "address", "gets"], ["The", "domain", "corp"],
    ]  # fmt: skip


async def test_the_preview_of_a_domain_without_logins_is_not_offered(site: Site, admin: Visitor) -> None:
    """Home links to the preview of each domain that has logins of the last day. Without any logins, it links to all."""
    busy = await site.areas.domains.add(site.areas.tenant, "branch")
    assert "if corp enforces? Who would be refused if branch enforces?" in text_of(await admin.get("/"))
    await add(site, "ann", domain=busy)
    site.clock.pass_by(60)  # the present hour is read again
    text = text_of(await admin.get("/"))
    assert "Who would be refused if branch enforces?" in text
    assert "if corp enforces?" not in text
    await site.areas.domains.set_mode([busy], Mode.ENFORCE)
    assert "Who would be refused" not in text_of(await admin.get("/"))


@pytest.mark.parametrize(
    ("free_mib", "expected"),
    [
        pytest.param(1024, [], id="enough"),
        pytest.param(1023, [False], id="little"),
        pytest.param(63, [True], id="less than the reserve"),
    ],
)
def test_a_disk_with_little_space_is_named(free_mib: int, expected: list[bool]) -> None:
    """The free space is named below 1 GiB. If less than the reserve is free, logins fail soon."""
    found = of_disk(free_mib << 20, 64 << 20, "node-1")
    assert [each.is_bad for each in found] == expected
    assert all(f"{free_mib} MiB are free on the disk of node-1" in each.text for each in found)


async def test_the_chart_shows_the_last_day_by_hour(site: Site, admin: Visitor) -> None:
    """Each hour has a bar. Accepted and rejected logins are stacked on one scale, and the same numbers are in words and
    in a table. Logins of another tenant or before the last day are not counted."""
    foreign = await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(2, 2), "theirs")
    now = site.clock.now
    await add(site, "old", at=now - 24 * HOUR)
    for _ in range(4):
        await add(site, "ann", at=now - 3 * HOUR)
    await add(site, "eve", domain=foreign)
    for _ in range(2):
        await add(site, "ann")
    await add(site, "bob", reason=Reason.WRONG_PASSWORD)
    page = await admin.get("/")
    assert 'aria-label="Logins of the last 24 hours: 6 accepted, 1 rejected; at most 4 in one hour"' in page.text
    assert re.findall(r'<rect class="(\w+)" x="(\d+)" y="([\d.]+)" width="7" height="([\d.]+)">', page.text) == [
        ("accept", "200", "0.0", "100.0"), ("accept", "230", "50.0", "50.0"), ("reject", "230", "25.0", "25.0"),
    ]  # fmt: skip
    assert "4 2 0 24 h ago 18 h 12 h 6 h now" in text_of(page)
    rows = re.findall(r'"Accepted" class="number">(.*?)</td><td data-title="Rejected" class="number">(.*?)<', page.text)
    assert rows[:4] == [("2", "1"), ("0", "0"), ("0", "0"), ("4", "0")]
    assert len(rows) == 24
    assert "style=" not in page.text


async def test_an_hour_is_counted_once(site: Site, admin: Visitor) -> None:
    """After its end an hour is not read again. The present hour is read again after a minute."""
    first = await add(site, "ann", at=site.clock.now - 2 * HOUR)
    await add(site, "ann")
    assert "2 accepted" in text_of(await admin.get("/"))
    await add(site, "ann")
    await site.areas.store.write(lambda tx: tx.execute("delete from events where id = :id", id=first))
    assert "2 accepted" in text_of(await admin.get("/"))
    site.clock.pass_by(60)
    assert "3 accepted" in text_of(await admin.get("/"))


async def test_a_day_without_logins_has_no_bar(site: Site, admin: Visitor) -> None:
    """The chart of a new tenant is empty, and says so in words."""
    page = await admin.get("/")
    assert 'aria-label="Logins of the last 24 hours: 0 accepted, 0 rejected; at most 0 in one hour"' in page.text
    assert "<rect" not in page.text


@pytest.mark.parametrize(
    ("most", "top"), [(0, 2), (1, 2), (2, 2), (3, 4), (9, 10), (10, 10), (11, 20), (33, 40), (61, 80), (101, 200)]
)
def test_the_scale_ends_at_a_round_number(most: int, top: int) -> None:
    """The top and the middle of the axis are whole numbers, and the highest bar uses at least half of the height."""
    assert top_of(most) == top
