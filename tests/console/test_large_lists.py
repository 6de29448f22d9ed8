"""Lists that are longer than a page may read: what is searched at first, and how the rest is found."""

import pytest

from sallyport.areas.audit.repo import AuditQuery, matching
from sallyport.areas.devices.rows import DeviceQuery
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.preview.traffic import SLICE_EVENTS
from sallyport.areas.sessions.repo import page
from sallyport.areas.sessions.session import SessionQuery
from sallyport.areas.users.accounts.account import UserChange
from sallyport.areas.users.groups.group import Group
from sallyport.console.pages.endpoints.access import MAX_USERS
from sallyport.console.pages.enforcement import MAX_DECIDED
from sallyport.console.table import SEARCHED
from sallyport.store import counters
from sallyport.store.model import Tx
from sallyport.store.search import FAR, MAX_COUNTED, IndexEntry, SearchIndex, from_end
from tests.console.test_logins import add, users
from tests.console.visitor import Site, Visitor, text_of

EVENT = (
    "at, domain_id, ip_address, client_ip, device_id, device_name, station, method, factor, decision, "
    "applied_decision, would_have_been, reason, latency_us"
)
NUMBERS = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :most)"


async def copy(site: Site, event: int, count: int) -> None:
    """Copy an event many times, each a microsecond later, with the user `other`."""
    copied = EVENT.replace("at,", "at + n,", 1)
    rows = f"select 'other', {copied} from events, numbers where id = :id"  # noqa: S608
    sql = f"insert into events (user_name, {EVENT}) {NUMBERS} {rows}"
    await site.areas.store.write(lambda tx: tx.execute(sql, id=event, most=count))
    site.clock.pass_by(1)


async def test_a_filter_searches_the_newest_logins_first(site: Site, admin: Visitor) -> None:
    """A filter looks at the newest logins. The page names the time from which it has searched, and has a link that
    searches all logins.
    """
    await add(site, "ann")
    await copy(site, await add(site, "bob"), SEARCHED + 10)
    await add(site, "carl")
    first = await admin.get("/logins?user=ann")
    assert users(first.text) == []
    assert "Only the entries since" in text_of(first)
    assert users((await admin.get("/logins?user=ann&all=1")).text) == ["ann"]
    assert users((await admin.get("/logins?user=carl")).text) == ["carl"]
    assert "user=ann&amp;all=1" in first.text


async def test_an_export_has_all_matching_logins(site: Site, admin: Visitor) -> None:
    """A file for a spreadsheet has also the logins that a page would not search."""
    await add(site, "ann")
    await copy(site, await add(site, "bob"), SEARCHED + 10)
    assert ",ann," in (await admin.get("/logins?user=ann&format=csv")).text


async def test_a_short_log_is_searched_completely(site: Site, admin: Visitor) -> None:
    """The hint appears only if logins were left out."""
    await add(site, "ann")
    shown = await admin.get("/logins?user=nobody")
    assert "Only the entries since" not in shown.text


async def test_each_row_of_a_list_has_a_page(site: Site, admin: Visitor) -> None:
    """The page of an object finds the object at any place of its list, and only there."""
    for number in range(6):
        body = {"instanceName": f"host-{number}", "osId": "1", "privateIp": f"10.0.0.{number}"}
        assert (await admin.send("/instances/add", body)).status_code == 303
    listed = await site.areas.store.read(lambda tx: tx.rows("select id, name from endpoint_instances order by id"))
    assert len(listed) == 6
    for instance, name in listed:
        assert str(name) in (await admin.get(f"/instances/{instance}")).text
    last = int(str(listed[-1][0]))
    for missing in (0, last + 1, 10**15):
        assert (await admin.get(f"/instances/{missing}")).status_code == 404


async def test_a_long_list_is_counted_to_a_limit(site: Site, admin: Visitor) -> None:
    """The total of the stations says that there are more."""
    rows = "insert into stations (domain_id, device_id, station, user_name, first_seen, last_seen, request_count)"
    sql = f"{rows} {NUMBERS} select :d, 1, 'station ' || n, 'ann', 0, 0, 1 from numbers"  # noqa: S608
    await site.areas.store.write(lambda tx: tx.execute(sql, d=site.areas.domain, most=MAX_COUNTED + 1))
    assert f"{MAX_COUNTED} or more in all" in text_of(await admin.get("/stations"))
    assert "1 in all" in text_of(await admin.get("/stations?search=station%2010001"))


async def test_the_last_sessions_are_read_from_the_end(site: Site) -> None:
    """A page near the end of a long list of sessions has the rows that its offset says."""
    total, domain = FAR + 1_000, site.areas.domain
    columns = (
        "domain_id, device_id, acct_session_id, newest, session_time, input_octets, output_octets, input_packets, "
        "output_packets, started, first_seen, updated, state, records, recent, follows"
    )
    values = ":d, n, :octets, 1, 0, 0, 0, 0, 0, n, n, n, 'live', 1, :octets, 0"
    sql = f"insert into sessions ({columns}) {NUMBERS} select {values} from numbers"  # noqa: S608

    def write(tx: Tx) -> None:
        tx.execute(sql, d=domain, most=total, octets=b"")
        counters.add(tx, domain, "sessions.live", total)

    await site.areas.store.write(write)
    for offset in (0, FAR + 990, FAR + 995, total):
        query = SessionQuery(domain, offset=offset, limit=10)
        rows, found = await site.areas.store.read(lambda tx, query=query: page(tx, query))  # type: ignore[misc]
        assert found == total
        assert [row.started for row in rows] == list(range(total - offset, max(0, total - offset - 10), -1))


async def test_a_filter_searches_the_newest_changes_first(site: Site, admin: Visitor) -> None:
    """The audit trails of the tenant and of the installation search the newest entries first, and all on demand."""
    columns = "at, tenant_id, domain_id, actor_kind, actor, action, target, changes"
    values = ":at + n, :t, null, 'token', case n when 1 then 'ann' else 'bob' end, 'user.add', 'user 1', '{}'"
    sql = f"insert into audit_trail ({columns}) {NUMBERS} select {values} from numbers"  # noqa: S608
    areas = site.areas
    await areas.store.write(lambda tx: tx.execute(sql, at=site.clock.now, t=areas.tenant, most=SEARCHED + 10))
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(await site.administrator("root")))
        for visitor, path in ((admin, "/audit"), (root, "/installation/audit")):
            first = await visitor.get(f"{path}?actor=ann")
            assert "Only the entries since" in text_of(first)
            assert "user.add" not in first.text
            assert "user.add" in (await visitor.get(f"{path}?actor=ann&all=1")).text
            assert "user.add" in (await visitor.get(f"{path}?actor=bob")).text


async def test_the_last_changes_are_read_from_the_end(site: Site) -> None:
    """A page near the end of a long audit trail has the entries that its offset says, in the same order."""
    areas, count = site.areas, FAR + 1_000
    columns = "at, tenant_id, domain_id, actor_kind, actor, action, target, changes"
    values = ":at + n / 2, :t, null, 'token', 'ann', 'user.add', 'user ' || n, '{}'"  # each time has two entries
    sql = f"insert into audit_trail ({columns}) {NUMBERS} select {values} from numbers"  # noqa: S608
    before = await areas.store.read(lambda tx: matching(tx, AuditQuery(areas.tenant), 0))

    def write(tx: Tx) -> None:
        tx.execute(sql, at=site.clock.now, t=areas.tenant, most=count)
        total = "update audit_totals set value = value + :count where tenant_id = :t and domain_id = 0"
        assert tx.execute(total, count=count, t=areas.tenant) == 1

    await areas.store.write(write)
    for offset in (0, FAR + 990, FAR + 995):
        query = AuditQuery(areas.tenant, offset=offset, limit=10)
        rows, total = await areas.audit.page(query)
        assert total == before + count
        wanted = range(count - offset, max(0, count - offset - 10), -1)
        assert [row.target for row in rows][: len(wanted)] == [f"user {number}" for number in wanted]
        assert len(rows) == min(10, total - offset)
    assert await areas.audit.newest(AuditQuery(areas.tenant, offset=before + count, limit=10)) == []


@pytest.mark.parametrize(("offset", "limit"), [(FAR, 10), (FAR + 10, 10), (FAR + 20, 10), (FAR + 30, 10)])
def test_a_page_is_read_from_the_end(offset: int, limit: int) -> None:
    """The page in the reversed list has the same rows, and no page is read from the end before FAR."""
    rows = range(FAR + 25)
    found = from_end(len(rows), offset, limit)
    assert (found is None) is (offset == FAR)
    if found is not None:
        assert list(rows[::-1][found[0] :][: found[1]][::-1]) == list(rows[offset:][:limit])
    assert from_end(10 * FAR, offset, limit) is None


async def test_a_search_examines_the_newest_stations_first(site: Site, admin: Visitor) -> None:
    """The page names the number of stations that it has searched, and has a link that searches all. A file has all."""
    rows = "insert into stations (domain_id, device_id, station, user_name, first_seen, last_seen, request_count)"
    sql = f"{rows} {NUMBERS} select :d, 1, 'station ' || n, 'ann', 0, 0, 1 from numbers"  # noqa: S608
    await site.areas.store.write(lambda tx: tx.execute(sql, d=site.areas.domain, most=SEARCHED))
    short = await admin.get("/stations?search=station%2010001")
    assert "1 in all" in text_of(short) and "were searched" not in text_of(short)
    await site.areas.store.write(lambda tx: tx.execute(sql.replace("|| n", "|| -n"), d=site.areas.domain, most=1))
    first = await admin.get("/stations?search=station%201&deviceId=")
    assert "Only the newest 20,000 stations were searched" in text_of(first)
    assert "search=station+1&amp;deviceId=&amp;all=1" in first.text or "all=1" in first.text
    assert "station 1 " not in text_of(first) and "station 10 " in text_of(first)
    assert "station -1 " in text_of(await admin.get("/stations?search=station%20-1"))
    assert "station 1 " in text_of(await admin.get("/stations?search=station%201&all=1"))
    assert "station 1 " in text_of(await admin.get("/stations?search=station%201&deviceId=1"))
    assert "\r\nstation 1," in (await admin.get("/stations?search=station%201&format=csv")).text


async def test_a_group_has_more_users_than_its_pages_list(site: Site, admin: Visitor) -> None:
    """The pages of a group find its users behind other users of the domain, and count all of them. The form lists some
    users, finds others by name, and changes only the users that it lists.
    """
    areas, many = site.areas, MAX_USERS + 1
    for number in range(2 * many):
        await areas.accounts.add(areas.domain, UserChange(f"user-{number:04}"))
    group = await areas.groups.add(areas.domain, Group("staff"))
    ids = await areas.store.read(lambda tx: tx.rows("select id from endpoint_users order by id"))
    later = [int(str(each)) for (each,) in ids[many:]]
    sql = "insert into endpoint_group_users (group_id, user_id) values (:group, :user)"
    await areas.store.write(lambda tx: [tx.execute(sql, group=group, user=each) for each in later])
    page = f"/endpoint-groups/{group}"
    shown = text_of(await admin.get(page))
    assert f"user-{many:04}, user-{many + 1:04}," in shown and f"user-{2 * many - 2:04} and 1 more" in shown
    assert f"and {many - 20} more" in text_of(await admin.get(f"{page}/remove"))
    form = await admin.get(f"{page}/users")
    assert form.text.count('name="chosen"') == MAX_USERS and "At most 200 are listed" in text_of(form)
    assert "checked" not in form.text
    assert (await admin.get(f"{page}/users?present=1")).text.count(" checked>") == MAX_USERS
    await admin.send(f"{page}/users?filter=user-{many:04}", {})
    await admin.send(f"{page}/users?filter=user-0000", {"chosen": str(later[0] - many)})
    left = await areas.store.read(lambda tx: tx.rows("select user_id from endpoint_group_users order by user_id"))
    assert [int(str(each)) for (each,) in left] == [later[0] - many, *later[1:]]


async def test_a_search_in_a_common_filter(site: Site) -> None:
    """A search in a filter with many devices has the same rows and the same total as a search in one with few."""
    areas = site.areas
    columns = (
        "domain_id, ip_address, client_ip, nas_identifier, device_name, device_type, device_type_certainty, "
        "nas_device_type, nas_port_type, nas_identifier_key, device_type_key, nas_port_type_key, first_seen, "
        "last_seen, request_count, registrations, evidence"
    )
    medium = "case when n % 2 = 0 then 'wireless' else 'ethernet' end"
    values = (
        f":d, '', '', 'nas-' || n, 'nas-' || n, '', '', '', {medium}, 'nas-' || n, '', {medium}, 0, 0, 0, 1, '{{}}'"
    )
    sql = f"insert into devices ({columns}) {NUMBERS} select {values} from numbers"  # noqa: S608

    def write(tx: Tx) -> None:
        tx.execute(sql, d=areas.domain, most=2 * MAX_COUNTED + 2)
        added = tx.rows("select id, nas_identifier from devices")
        texts = [IndexEntry(areas.domain, int(str(each)), (str(name),)) for each, name in added]
        SearchIndex("devices_search").add_all(tx, texts)

    await areas.store.write(write)
    for search, offset, names, total in (
        ("nas-1999", 0, ["nas-1999", "nas-19991"], 6),
        ("nas-", MAX_COUNTED, ["nas-20001"], MAX_COUNTED),
        ("as", 0, ["nas-1", "nas-3"], MAX_COUNTED),
        ("nothing", 0, [], 0),
    ):
        query = DeviceQuery(areas.domain, search, "nas_port_type", "Ethernet", offset=offset, limit=2)
        rows, found, _ = await areas.devices.page(query)
        assert ([row.device_name for row in rows], int(found)) == (names, total)


async def test_previews_decide_the_newest_logins_first(site: Site, admin: Visitor) -> None:
    """The pages about the effect of modes and rules decide a limited number of pairs of a user and a device, those of
    the newest logins. They say so, and have a link that decides all logins.
    """
    domain, count = site.areas.domain, 3 * SLICE_EVENTS
    assert count >= MAX_DECIDED > 2 * SLICE_EVENTS
    await add(site, "ann")
    bob = await add(site, "bob")
    sql = f"insert into events (user_name, {EVENT}) {NUMBERS} select 'u' || n, {EVENT} from events, numbers "  # noqa: S608
    await site.areas.store.write(lambda tx: tx.execute(f"{sql} where id = :id", id=bob, most=count - 1))
    await site.areas.rules.add(domain, RuleFields.model_validate({"name": "r", "action": "block", "users": ["ann"]}))
    hint = "Only the newest logins were decided again, those since"
    for path in (f"/domains/{domain}/preview?days=30", "/rules/1/remove"):
        first = await admin.get(path)
        assert hint in text_of(first) and "about 50,000 pairs" in text_of(first) and f" {count} " in text_of(first)
        assert "all=1" in first.text
    everything = text_of(await admin.get(f"/domains/{domain}/preview?days=30&all=1"))
    assert hint not in everything and f" {count + 1}," in everything
