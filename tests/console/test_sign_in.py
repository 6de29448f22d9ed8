"""The sign-in: by access token and as a local administrator, and the refusals."""

import json
from collections import Counter

import httpx
import pytest
import trio

from sallyport.areas.signin.area import FAILED_SIGN_INS
from sallyport.areas.signin.sessions import Browser
from sallyport.areas.signin.sign_ins import MAX_REFUSALS, SignIns
from sallyport.areas.tenancy.guesses import Guesses
from sallyport.base.clock import SECOND
from sallyport.base.errors import TooMany, Unauthenticated
from sallyport.base.secret import token_hash
from sallyport.console.guard import form_token
from sallyport.web.scope import Role
from tests.areas import stored
from tests.console.visitor import PASSWORD, Site, Visitor, text_of

OUTSIDE = "192.0.2.9"


def session_cookie(answer: httpx.Response) -> str:
    """Return the Set-Cookie header of the session."""
    (found,) = [each for each in answer.headers.get_list("set-cookie") if each.partition("=")[0].endswith("sallyport")]
    return found


async def test_a_token_opens_a_session(site: Site) -> None:
    """A person with a token is led to the home page, and the audit trail has the sign-in."""
    async with site.visitor() as visitor:
        answer = await visitor.sign_in(f" {await site.token(Role.AUDITOR)} ")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert "auditor" in (await visitor.get("/")).text
    assert len(await site.audited("console.sign-in")) == 1


@pytest.mark.parametrize(
    ("base", "name", "is_secure"),
    [("https://console.example", "__Host-sallyport", True), ("http://127.0.0.1", "sallyport", False)],
    ids=["TLS", "in clear"],
)
async def test_the_cookie_has_strict_flags(site: Site, base: str, name: str, is_secure: bool) -> None:
    """Scripts, other sites and other hosts do not get the cookie of the session; over TLS it is never sent in clear."""
    async with site.visitor(base=base) as visitor:
        cookie = session_cookie(await visitor.sign_in(await site.token()))
    flags = {each.strip().lower() for each in cookie.split(";")[1:]}
    assert cookie.startswith(f"{name}=")
    assert {"httponly", "samesite=lax", "path=/"} <= flags
    assert ("secure" in flags) == is_secure
    assert not any(flag.startswith(("domain", "max-age", "expires")) for flag in flags)


async def test_neither_token_nor_key_is_kept(site: Site) -> None:
    """The browser does not get the token back, and the store does not have the key of the session."""
    token = await site.token()
    async with site.visitor() as visitor:
        key = session_cookie(await visitor.sign_in(token)).split(";")[0].partition("=")[2]
        page = await visitor.get("/")
    assert token not in page.text + repr(page.headers)
    octets = stored(site.areas.store)
    assert key.encode() not in octets
    assert token_hash(key).encode() in octets


@pytest.mark.parametrize("role", [Role.AGENT, Role.WALLET])
async def test_a_token_of_a_machine_is_refused(site: Site, role: Role) -> None:
    """Only tokens of admins, operators and auditors open a session."""
    async with site.visitor() as visitor:
        answer = await visitor.sign_in(await site.token(role))
        assert answer.status_code == 401
        assert not await visitor.is_signed_in()


async def test_a_wrong_token_is_refused_and_audited(site: Site) -> None:
    """The page shows the reason, does not repeat the token, and the audit trail has the failure."""
    async with site.visitor() as visitor:
        answer = await visitor.sign_in("sp_wrong")
    assert answer.status_code == 401
    assert "the token is not valid" in text_of(answer)
    assert "sp_wrong" not in answer.text
    assert await site.audited("console.refuse") == ["token"]


async def test_an_administrator_signs_in_with_password_and_code(site: Site) -> None:
    """An installation administrator acts in the only tenant, and the audit trail names the administrator."""
    seed = await site.administrator("root")
    async with site.visitor() as visitor:
        answer = await visitor.sign_in_as("ROOT", site.code(seed))
        assert answer.status_code == 303
        assert "org 1, tenant 1" in text_of(await visitor.get("/"))
    (target,) = await site.audited("console.sign-in")
    assert target.startswith("administrator ") and target.endswith(" root")


@pytest.mark.parametrize("wrong", ["name", "password", "code", "form of the code", "empty"])
async def test_the_refusal_does_not_tell_which_part_was_wrong(site: Site, wrong: str) -> None:
    """A wrong name, password or code gives the same answer, and no session."""
    seed = await site.administrator("root")
    code = site.code(seed)
    sent = {
        "name": ("rot", code, PASSWORD),
        "password": ("root", code, PASSWORD + "x"),
        "code": ("root", f"{(int(code) + 1) % 1_000_000:06}", PASSWORD),
        "form of the code": ("root", "٠١٢٣٤٥", PASSWORD),
        "empty": ("", "", ""),
    }[wrong]
    async with site.visitor() as visitor:
        answer = await visitor.sign_in_as(sent[0], sent[1], sent[2])
        assert answer.status_code == 401
        assert "the name, the password or the code is not right" in text_of(answer)
        assert PASSWORD not in answer.text
        assert not await visitor.is_signed_in()


async def test_a_typed_name_that_does_not_exist_is_not_recorded(site: Site) -> None:
    """The audit trail does not get a password that was typed into the field of the name."""
    async with site.visitor() as visitor:
        await visitor.sign_in_as(PASSWORD, "123456")
    assert await site.audited("console.refuse") == ["administrator"]


async def test_concurrent_attempts_count_together(site: Site) -> None:
    """Attempts with one name from many addresses at once get no more tries than attempts one after another."""
    await site.administrator("root")
    outcomes = Counter[type[Exception]]()

    async def attempt(number: int) -> None:
        browser = Browser(f"192.0.2.{number}")
        try:
            await site.areas.sign_ins.by_password("root", f"guess {number}", "123456", browser)
        except (Unauthenticated, TooMany) as error:
            outcomes[type(error)] += 1

    async with trio.open_nursery() as nursery:
        for number in range(FAILED_SIGN_INS + 5):
            nursery.start_soon(attempt, number)
    assert outcomes == {Unauthenticated: FAILED_SIGN_INS, TooMany: 5}


async def test_sign_ins_that_succeed_are_not_counted(site: Site) -> None:
    """An administrator can sign in more often than the limit of failed sign-ins."""
    seed = await site.administrator("root")
    for _ in range(FAILED_SIGN_INS + 1):
        site.clock.now += 30 * SECOND
        await site.areas.sign_ins.by_password("root", PASSWORD, site.code(seed), Browser(OUTSIDE))


async def test_other_nodes_hear_only_of_failures(site: Site) -> None:
    """The address and the name of a failed sign-in are sent to the other nodes. A sign-in that succeeds is not sent,
    because the other nodes would count it as a failure."""
    areas, told = site.areas, list[str]()
    limits = (Guesses(tell=told.append), Guesses(tell=told.append))
    sign_ins = SignIns(
        areas.store, areas.vault, areas.tenancy, *limits, areas.open_id, site.clock, longest_us=3600 * SECOND
    )
    seed = await site.administrator("root")
    await sign_ins.by_password("root", PASSWORD, site.code(seed), Browser(OUTSIDE))
    assert told == []
    with pytest.raises(Unauthenticated):
        await sign_ins.by_password("root", "wrong", "123456", Browser(OUTSIDE))
    assert [each.partition(" ")[0] for each in told] == [OUTSIDE, "name"]


async def test_the_entries_about_failed_sign_ins_are_limited(site: Site) -> None:
    """Failures from many addresses write a limited number of entries, and a later entry tells how many are left out."""
    sign_ins = site.areas.sign_ins
    for number in range(MAX_REFUSALS + 3):
        with pytest.raises(Unauthenticated):
            await sign_ins.by_token("sp_wrong", Browser(f"198.51.100.{number}"))
    assert len(await site.audited("console.refuse")) == MAX_REFUSALS
    site.clock.now += 61 * SECOND
    with pytest.raises(Unauthenticated):
        await sign_ins.by_token("sp_wrong", Browser(OUTSIDE))
    last = "select changes from audit_trail order by id desc limit 1"
    (changes,) = await site.areas.store.read(lambda tx: tx.rows(last))
    assert json.loads(str(changes[0]))["leftOut"] == [None, 3]


async def test_a_code_is_accepted_once(site: Site) -> None:
    """The code of a sign-in does not open a second session."""
    code = site.code(await site.administrator("root"))
    async with site.visitor() as first, site.visitor() as second:
        assert (await first.sign_in_as("root", code)).status_code == 303
        assert (await second.sign_in_as("root", code)).status_code == 401


@pytest.mark.parametrize(
    ("source", "base", "status"),
    [
        (OUTSIDE, "http://console.example", 403),
        ("127.0.0.1", "http://console.example", 303),
        ("::1", "http://console.example", 303),
        (OUTSIDE, "https://console.example", 303),
    ],
    ids=["in clear from outside", "on the machine", "on the machine, IPv6", "TLS"],
)
async def test_a_password_is_not_accepted_in_clear(site: Site, source: str, base: str, status: int) -> None:
    """A right password is refused on a connection that others can read, and the page has no field for it."""
    code = site.code(await site.administrator("root"))
    async with site.visitor(source, base) as visitor:
        assert ('name="password"' in (await visitor.get("/sign-in")).text) == (status == 303)
        assert (await visitor.sign_in_as("root", code)).status_code == status


async def test_a_sign_in_replaces_the_key_of_the_browser(site: Site) -> None:
    """A key that an attacker has planted in the browser before does not become a session."""
    async with site.visitor() as visitor:
        for name in ("__Host-sallyport", "__Host-sallyport_form"):
            visitor.http.cookies.set(name, "planted", domain="console.example")
        await visitor.sign_in(await site.token())
        assert visitor.http.cookies.get("__Host-sallyport", domain="console.example") != "planted"
    async with site.visitor() as attacker:
        attacker.http.cookies.set("__Host-sallyport", "planted", domain="console.example")
        assert not await attacker.is_signed_in()


async def test_a_second_sign_in_makes_another_session(site: Site, admin: Visitor) -> None:
    """A person who signs in again in the same browser gets another key."""
    before = dict(admin.http.cookies)
    await admin.sign_in(await site.token())
    assert admin.http.cookies["__Host-sallyport"] != before["__Host-sallyport"]


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({}, ""),
        ({}, form_token("another key")),
        ({"sec-fetch-site": "cross-site"}, None),
        ({"sec-fetch-site": "same-site"}, None),
        ({"origin": "https://evil.example"}, None),
        ({"origin": "null"}, None),
    ],
    ids=["no token", "of another browser", "cross-site", "same-site", "another origin", "no origin"],
)
async def test_a_sign_in_by_another_site_is_refused(site: Site, headers: dict[str, str], token: str | None) -> None:
    """Another site cannot sign a person in to an account of the attacker."""
    async with site.visitor() as visitor:
        await visitor.get("/sign-in")
        own = form_token(visitor.http.cookies["__Host-sallyport_form"])
        fields = {"csrf": own if token is None else token, "token": await site.token()}
        answer = await visitor.http.post("/sign-in", data=fields, headers=headers)
        assert answer.status_code == 403
        assert not await visitor.is_signed_in()


async def test_an_address_that_fails_often_has_to_wait(site: Site) -> None:
    """After ten failures even a valid token is refused, until some time has passed. Other addresses are not
    concerned."""
    token = await site.token()
    async with site.visitor(OUTSIDE) as visitor, site.visitor("192.0.2.10") as other:
        for _ in range(10):
            assert (await visitor.sign_in("sp_wrong")).status_code == 401
        assert (await visitor.sign_in(token)).status_code == 429
        assert (await other.sign_in(token)).status_code == 303
        site.clock.pass_by(60)
        assert (await visitor.sign_in(token)).status_code == 303


async def test_a_name_that_fails_often_from_outside_still_works_on_the_machine(site: Site) -> None:
    """Guesses for one administrator from many addresses are limited, but they do not keep the administrator out."""
    seed = await site.administrator("root")
    for number in range(10):
        async with site.visitor(f"192.0.2.{number}") as guesser:
            assert (await guesser.sign_in_as("root", "000000", "wrong")).status_code == 401
    async with site.visitor(OUTSIDE) as outside, site.visitor("127.0.0.1") as local:
        assert (await outside.sign_in_as("root", site.code(seed))).status_code == 429
        assert (await local.sign_in_as("root", site.code(seed))).status_code == 303


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:1", "a"])
async def test_the_next_page_is_one_of_the_console(site: Site, target: str) -> None:
    """A link to the sign-in page cannot lead to another site."""
    async with site.visitor() as visitor:
        answer = await visitor.sign_in(await site.token(), next=target)
        assert answer.headers["location"] == "/"


async def test_a_person_comes_to_the_page_of_the_link(site: Site) -> None:
    """A link to a page leads to the sign-in, and then to the page with its filters."""
    async with site.visitor() as visitor:
        asked = await visitor.get("/account?sort=-began")
        assert asked.headers["location"] == "/sign-in?next=%2Faccount%3Fsort%3D-began"
        answer = await visitor.sign_in(await site.token(), next="/account?sort=-began")
        assert answer.headers["location"] == "/account?sort=-began"
