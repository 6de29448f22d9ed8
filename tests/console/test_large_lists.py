"""Lists that are longer than a page may read: what is searched at first, and how the rest is found."""

from sallyport.console.table import SEARCHED
from sallyport.inventory.sessions.repo import FAR, SessionQuery, page
from sallyport.store import counters
from sallyport.store.model import Tx
from sallyport.store.search import MOST_COUNTED
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
    await site.areas.store.write(lambda tx: tx.execute(sql, d=site.areas.domain, most=MOST_COUNTED + 1))
    assert f"{MOST_COUNTED} or more in all" in text_of(await admin.get("/stations"))
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
