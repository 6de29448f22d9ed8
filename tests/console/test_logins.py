"""The live log and the page of a login."""

import re
from typing import get_args

import pytest

from sallyport.areas.login.advice import ADVICE, Step
from sallyport.areas.login.login import Reason
from sallyport.console.live import message
from sallyport.console.pages.logins import COLUMNS, State
from sallyport.web.scope import Role
from tests.areas.dynamic.world import device
from tests.console.visitor import Site, Visitor, text_of

EVIL = '<img src=x onerror="alert(1)">'


async def add(
    site: Site,
    user: str,
    *,
    reason: Reason = Reason.NONE,
    domain: int = 0,
    station: str = "02-01",
    **more: int | str,
) -> int:
    """Store the event of a login of enforce mode, and return its id. more: values of further columns."""
    answer = "accept" if reason is Reason.NONE else "reject"
    site.clock.pass_by(1)
    values: dict[str, int | str] = {
        "at": site.clock.now, "domain_id": domain or site.areas.domain, "user_name": user, "ip_address": "192.0.2.1",
        "client_ip": "10.0.0.1", "device_id": 0, "device_name": "wlc-1", "station": station, "method": "pap",
        "factor": "local", "decision": answer, "applied_decision": answer, "would_have_been": "",
        "reason": reason.value, "latency_us": 1500, **more,
    }  # fmt: skip
    named = ", ".join(f":{name}" for name in values)
    sql = f"insert into events ({', '.join(values)}) values ({named}) returning id"  # noqa: S608
    made = await site.areas.store.write(lambda tx: tx.value(int, sql, **values))
    assert made is not None
    return made


def users(text: str) -> list[str]:
    """Return the users in the rows of a page."""
    return re.findall(r'data-title="User">\s*<a [^>]*>([^<]*)</a>', text)


async def test_the_newest_login_is_first(site: Site, admin: Visitor) -> None:
    """The list has the logins of all domains of the tenant, newest first, and a link to each."""
    other = await site.areas.domains.add(site.areas.tenant, "branch")
    await add(site, "ann")
    number = await add(site, "bob", domain=other)
    page = await admin.get("/logins")
    assert users(page.text) == ["bob", "ann"]
    assert f'href="/logins/{number}?domain={other}"' in page.text


async def test_a_login_of_monitor_mode_says_what_enforce_mode_would_answer(site: Site, admin: Visitor) -> None:
    """The reason is that of the refusal in enforce mode, not of the answer."""
    number = await add(
        site, "ann", reason=Reason.BLOCKED, applied_decision="accept", decision="accept", would_have_been="reject"
    )
    text = text_of(await admin.get(f"/logins/{number}"))
    assert "because the domain was in monitor mode. In enforce mode: reject : blocked by rule" in text


def reasons(page: str) -> list[tuple[str, str]]:
    """Return the texts of the columns Reason and In enforce mode in each row."""
    found = re.findall(r'data-title="Reason">(.*?)</td>.*?data-title="In enforce mode">(.*?)</td>', page, re.DOTALL)
    return [(re.sub("<[^>]*>", "", reason), re.sub("<[^>]*>", "", enforced)) for reason, enforced in found]


@pytest.mark.parametrize("path", ["/logins", "/devices/{device}", "/people/person?user=ann"])
async def test_a_list_has_the_reason_beside_the_answer_to_which_it_belongs(
    site: Site, admin: Visitor, path: str
) -> None:
    """An accepted login has no reason of a refusal: this reason is beside the answer of enforce mode. A refusal of both
    modes has its reason beside the answer that was sent."""
    _, number, *_ = await device(site.areas, await site.areas.client(), "192.0.2.1", NAS_IDENTIFIER=b"ap-1")
    refused = {"decision": "reject", "would_have_been": "reject", "device_id": number}
    await add(site, "ann", reason=Reason.WRONG_PASSWORD, **refused)
    await add(site, "ann", reason=Reason.BLOCKED, **{**refused, "applied_decision": "accept"})
    page = await admin.get(path.replace("{device}", str(number)))
    assert reasons(page.text) == [("&ndash;", "reject blocked by rule"), ("wrong password", "reject")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("user=ANN", ["ann"]),
        ("user=an", []),
        ("search=an", ["joanna", "ann"]),
        ("appliedDecision=reject", ["joanna"]),
        ("reason=wrong%20password", ["joanna"]),
        ("station=02-02", ["bob"]),
        ("device=WLC-1", ["joanna", "bob", "ann"]),
        ("appliedDecision=accept&user=bob", ["bob"]),
    ],
)
async def test_the_filters_are_in_the_address(site: Site, admin: Visitor, query: str, expected: list[str]) -> None:
    """A filtered list can be bookmarked, and its form shows the filters."""
    await add(site, "ann")
    await add(site, "bob", station="02-02")
    await add(site, "joanna", reason=Reason.WRONG_PASSWORD)
    page = await admin.get(f"/logins?{query}")
    assert users(page.text) == expected
    assert ("Nothing matches" in page.text) == (not expected)


@pytest.mark.parametrize("query", ["station=0200.0000.00AB", "search=02:00:00:00:00:ab", "station=02-00-00-00-00-ab"])
async def test_a_station_is_found_in_any_notation(site: Site, admin: Visitor, query: str) -> None:
    """The list shows one notation, and the filters accept each."""
    await add(site, "ann", station="02-00-00-00-00-AB")
    await add(site, "bob", station="02-00-00-00-00-AC")
    await add(site, "joe", station="0200000000ab")
    page = await admin.get(f"/logins?{query}")
    assert users(page.text) == ["joe", "ann"]
    assert page.text.count("<code>02:00:00:00:00:ab</code>") == 2


async def test_older_logins_follow_by_a_link(site: Site, admin: Visitor) -> None:
    """With a domain chosen, the next page continues where the first ends, although new logins have arrived."""
    for number in range(53):
        await add(site, f"u{number}")
    page = await admin.get(f"/logins?domain={site.areas.domain}")
    (older,) = re.findall(r'rel="next" href="([^"]+)"', page.text)
    await add(site, "new")
    assert users((await admin.get(older.replace("&amp;", "&"))).text) == ["u2", "u1", "u0"]


async def test_a_login_shows_its_steps_and_what_to_do(site: Site, admin: Visitor) -> None:
    """The page of a login has its steps, the reason in words, a remedy, and the other logins of the user."""
    earlier = await add(site, "ann")
    number = await add(site, "ann", reason=Reason.WRONG_PASSWORD)
    text = text_of(await admin.get(f"/logins/{number}?domain={site.areas.domain}"))
    assert "first factor ended here wrong password" in text
    assert "second factor not reached" in text
    assert ADVICE[Reason.WRONG_PASSWORD].remedy in text
    page = await admin.get(f"/logins/{number}?domain={site.areas.domain}")
    assert f"/logins/{earlier}?" in page.text
    assert text_of(page).index("Factors and lock-out of ann") < text_of(page).index("Steps")
    assert f"/people/person?domain={site.areas.domain}&amp;user=ann" in page.text


async def test_a_login_shows_its_rule_and_the_times_of_its_steps(site: Site, admin: Visitor) -> None:
    """The rule is a link to its page. The times of the factors are shown for a login that waited, and for no other."""
    number = await add(site, "ann", rule_id=7, rule_name="night <shift>", first_us=2500, second_us=6_500_000)
    page = await admin.get(f"/logins/{number}?domain={site.areas.domain}")
    text = text_of(page)
    assert "first factor passed checked by local (2.5 ms)" in text
    assert "login rules passed decided by the rule night <shift>" in text
    assert f'href="/rules/7/edit?domain={site.areas.domain}"' in page.text
    assert "second factor passed not required (6.5 s)" in text
    plain = text_of(await admin.get(f"/logins/{await add(site, 'ann', rule_id=0)}?domain={site.areas.domain}"))
    assert "checked by local login rules passed no rule matched" in plain


async def test_a_login_shows_its_station_in_one_notation(site: Site, admin: Visitor) -> None:
    """The steps and the details have the notation of the lists."""
    number = await add(site, "ann", station="02-00-00-00-00-AB")
    text = text_of(await admin.get(f"/logins/{number}?domain={site.areas.domain}"))
    assert "for station 02:00:00:00:00:ab" in text
    assert "Station 02:00:00:00:00:ab" in text


async def test_a_refusal_names_its_rule_with_the_reason(site: Site, admin: Visitor) -> None:
    """The rule that blocked a login is named before the steps, and the rule of an accepted login only in its step."""
    blocked = await add(site, "ann", reason=Reason.BLOCKED, rule_id=7, rule_name="left")
    text = text_of(await admin.get(f"/logins/{blocked}?domain={site.areas.domain}"))
    assert "A login rule blocks this login. The rule: left What to do:" in text
    wrong = await add(site, "ann", reason=Reason.WRONG_CODE, rule_id=7, rule_name="left")
    assert "The rule:" not in text_of(await admin.get(f"/logins/{wrong}?domain={site.areas.domain}"))


async def test_a_wrong_code_has_its_detail_beside_the_reason(site: Site, admin: Visitor) -> None:
    """What the provider says about a wrong code is shown before the remedy, not only in the list of all fields."""
    number = await add(site, "ann", reason=Reason.ASKED_AGAIN, detail="the code was used before")
    text = text_of(await admin.get(f"/logins/{number}?domain={site.areas.domain}"))
    assert "Detail: the code was used before. What to do:" in text


async def test_a_login_shows_the_attributes_of_its_answer(site: Site, admin: Visitor) -> None:
    """Each attribute has a line of its own, as text."""
    number = await add(site, "ann", attributes="Filter-Id = <staff>\nSession-Timeout = 600")
    page = await admin.get(f"/logins/{number}?domain={site.areas.domain}")
    assert "<code>Filter-Id = &lt;staff&gt;</code><br><code>Session-Timeout = 600</code>" in page.text
    plain = await admin.get(f"/logins/{await add(site, 'ann')}?domain={site.areas.domain}")
    assert "Attributes of the answer none to show" in text_of(plain)


async def test_a_login_of_an_earlier_version_says_so(site: Site, admin: Visitor) -> None:
    """An event without a recorded rule does not claim that no rule matched."""
    text = text_of(await admin.get(f"/logins/{await add(site, 'ann')}?domain={site.areas.domain}"))
    assert "an earlier version has not recorded the rule" in text
    assert "no rule matched" not in text


async def test_a_login_is_tested_as_it_would_be_decided_now(site: Site, admin: Visitor) -> None:
    """The page names the factors and the mode for the user and the client of the login. It also names the missing
    provider."""
    await site.areas.client("192.0.2.1/32")
    await site.areas.add_user(site.areas.domain, "ann", b"hello")
    number = await add(site, "ann", reason=Reason.WRONG_PASSWORD)
    page = await admin.get(f"/logins/{number}/now?domain={site.areas.domain}")
    assert page.status_code == 200, text_of(page)
    text = text_of(page)
    assert (
        "ann would get accept now, because the domain is in monitor mode. In enforce mode: reject : no provider" in text
    )
    assert "corp, monitor" in text
    assert "none: require a second factor" in text


async def test_a_login_of_another_tenant_does_not_exist(site: Site, admin: Visitor) -> None:
    """Neither its own domain nor one of the tenant opens it, and the list does not have it."""
    foreign = await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(2, 2), "theirs")
    number = await add(site, "mallory", domain=foreign)
    for query in ("", "/now", f"?domain={foreign}", f"/now?domain={foreign}", f"?domain={site.areas.domain}"):
        assert (await admin.get(f"/logins/{number}{query}")).status_code == 404
    assert "mallory" not in (await admin.get("/logins")).text
    assert (await admin.get(f"/logins?domain={foreign}")).status_code == 404


@pytest.mark.parametrize("path", ["/", "/logins", "/logins/{number}", "/logins/{number}/now", "/logins?format=csv"])
async def test_a_name_from_a_packet_is_text(site: Site, admin: Visitor, path: str) -> None:
    """A user name with HTML in it does not become an element."""
    await site.areas.client("192.0.2.1/32")
    number = await add(site, EVIL, reason=Reason.UNKNOWN_USER, station=EVIL)
    page = await admin.get(path.replace("{number}", str(number)))
    assert page.status_code == 200
    if "csv" in path:
        assert page.headers["content-type"].startswith("text/csv")
        assert "attachment" in page.headers["content-disposition"]
    else:
        assert "<img" not in page.text
        assert "&lt;img" in page.text


async def test_an_auditor_reads_the_log(site: Site) -> None:
    """The live log is a page for every role."""
    await add(site, "ann")
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(Role.AUDITOR))
        assert users((await visitor.get("/logins")).text) == ["ann"]


async def test_the_home_page_names_what_needs_attention(site: Site, admin: Visitor) -> None:
    """The page of a tenant without clients and without a provider names both, and has the refused logins."""
    await add(site, "ann", reason=Reason.WRONG_PASSWORD)
    text = text_of(await admin.get("/"))
    assert "No RADIUS client is registered" in text
    assert "corp has no MFA provider yet. Open the domain" in text
    assert "Who would be refused if corp enforces?" in text
    assert "wrong password" in text


def test_each_reason_has_an_advice() -> None:
    """A login that ended for any reason is explained in words, at one step."""
    assert set(ADVICE) == set(Reason) - {Reason.NONE}
    for advice in ADVICE.values():
        assert advice.meaning.endswith(".")
        assert not advice.remedy or advice.remedy.endswith(".")
    assert {advice.step for advice in ADVICE.values()} == set(Step)


def test_the_states_of_a_step_are_classes_of_the_sheet() -> None:
    """Each state of a step has a name that is written in the list."""
    assert set(get_args(State)) == {"passed", "ended here", "would end here", "not reached", ""}
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)


def test_a_message_of_the_stream_cannot_be_split() -> None:
    """A line end in a row does not begin another message."""
    assert message(b"<tr>\n\n<td>a\r\nevent: x</td></tr>\n") == (
        b"event: row\ndata: <tr>\ndata: <td>a\ndata: event: x</td></tr>\n\n"
    )
