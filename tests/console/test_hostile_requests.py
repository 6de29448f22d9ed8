"""Requests that no browser of a person sends: forged places in lists, filters of any length, and many sign-ins."""

from collections import Counter

import pytest

from tests.console.test_logins import add
from tests.console.visitor import Site, Visitor, text_of

LONGEST = 8000
"""Octets of a filter. The head of a request may have 16 KiB."""
FILTERED = (
    ("/logins", ("search", "user", "device", "station", "appliedDecision", "reason")),
    ("/devices", ("search", "by", "is", "tag")),
    ("/stations", ("search", "deviceId")),
    ("/sessions", ("search", "userName", "live", "deviceId", "from", "to")),
    ("/clients", ("search", "tag")),
    ("/ssids", ("search",)),
    ("/people", ("search", "kind")),
    ("/people/person", ("user", "client", "station")),
    ("/bypass", ("search",)),
    ("/bypass/unknown", ("search",)),
    ("/directories/people", ("search", "group")),
    ("/directories/groups", ("search",)),
    ("/instances", ("search",)),
    ("/endpoint-users", ("search",)),
    ("/endpoint-groups", ("search",)),
    ("/wallets", ("search",)),
    ("/audit", ("search", "actor", "action", "from", "to", "domainId")),
)
PLACES = ("page", "cursor", "sort", "column", "after", "format")
FORGED = (
    "-1", "0", "999999999", "99999999999999999999", "1e9", "٣", "²", "1.1", "9223372036854775807.9223372036854775807",
    "9223372036854775808.1", "1.-1", "..", "%00", "%ff%fe", "' or 1=1 --", "<script>",
)  # fmt: skip


@pytest.mark.parametrize("path", [path for path, _ in FILTERED])
async def test_a_forged_place_is_no_error_of_the_service(admin: Visitor, path: str) -> None:
    """A page number, cursor or order that no page contains leads to a list, or to a page that says what is wrong."""
    found = Counter[int]()
    for text in FORGED:
        answer = await admin.get(f"{path}?user=ann&{'&'.join(f'{place}={text}' for place in PLACES)}")
        assert "<script>" not in answer.text
        found[answer.status_code] += 1
    assert set(found) <= {200, 400}
    assert found[200]


async def test_a_forged_cursor_leads_to_no_other_tenant(site: Site, admin: Visitor) -> None:
    """With a cursor after all logins, a person sees those of the own domain."""
    foreign = await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(2, 2), "theirs")
    await add(site, "mallory", domain=foreign)
    await add(site, "ann")
    shown = await admin.get(f"/logins?domain={site.areas.domain}&cursor=9223372036854775806.9223372036854775807")
    assert "ann" in text_of(shown)
    assert "mallory" not in shown.text


@pytest.mark.parametrize(("path", "filters"), FILTERED, ids=[path for path, _ in FILTERED])
async def test_a_long_filter_is_searched_or_refused(admin: Visitor, path: str, filters: tuple[str, ...]) -> None:
    """A filter as long as the head of a request allows is searched, or refused with a reason."""
    for name in filters:
        for text in ("x" * LONGEST, "%F0%9F%98%80" * (LONGEST // 12)):
            answer = await admin.get(f"{path}?{name}={text}")
            assert answer.status_code in (200, 400, 404), f"{name}: {answer.status_code}"
            assert answer.status_code == 200 or "This did not work" in answer.text


async def test_a_thousand_sign_ins_do_not_keep_others_out(site: Site) -> None:
    """An address that guesses a thousand times is refused without a look at its guess, and without an entry of the
    audit trail for each. A person at another address signs in.
    """
    async with site.visitor("192.0.2.66") as stranger, site.visitor("192.0.2.7") as person:
        shown = await stranger.get("/sign-in")
        statuses = Counter[int]()
        for number in range(1000):
            statuses[(await stranger.sign_in(f"sp_{number}")).status_code] += 1
        assert (await person.sign_in(await site.token())).status_code == 303
    assert shown.status_code == 200
    assert set(statuses) == {401, 429}
    assert statuses[401] <= 20
    assert len(await site.audited("console.refuse")) <= statuses[401]
