"""Tests of the site of people: its routes, headers, cookie and forms, and that the log has no codes."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing
from starlette.responses import RedirectResponse, Response
from structlog.testing import capture_logs

from sallyport.base.errors import NotFound, StoreError
from sallyport.web.connection import Connection
from sallyport.web.connections import PEER
from sallyport.web.people.site import FOLDER, STATIC, TYPES, PeoplePage, PeopleSite, static
from sallyport.web.people.visit import COOKIE, FORM_LIMIT, PeopleVisit, origin_of
from sallyport.web.server import Tls
from tests.web.sample import client_of
from tests.web.serving import serving

ORIGIN = "https://sallyport.example.org"
FORM = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
CODE = "K7M4PQ2X"
SECRET = "s" * 43


@dataclass
class Pages:
    """A page `/mfa/{code}` and a callback. It records the forms and the measurements."""

    folder: Path
    error: Exception | None = None
    form_to: tuple[str, ...] = ()
    submitted: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    measured: list[tuple[str, str, int]] = field(default_factory=list)

    async def show(self, visit: PeopleVisit) -> PeoplePage:
        """Return a page with a text that needs escaping."""
        if self.error is not None:
            raise self.error
        return PeoplePage("page.html", "<Title>", {"text": f"<b>{visit.browser}"}, form_to=self.form_to)

    async def submit(self, visit: PeopleVisit) -> PeoplePage | Response:
        """Return the page that is shown after the form. The field `go` redirects, and `renew` changes the cookie."""
        if "renew" in visit.fields:
            visit.renew()
        self.submitted.append((visit.at["code"], visit.browser, visit.fields))
        if self.error is not None:
            raise self.error
        if "go" in visit.fields:
            return RedirectResponse("/me", 303)
        return PeoplePage("page.html", "Done", {"text": "done"})

    async def callback(self, visit: PeopleVisit) -> PeoplePage:
        """Return the page of a path without parameters."""
        return PeoplePage("page.html", "Callback", {"text": visit.query["state"]})

    def client(self) -> httpx.AsyncClient:
        """Return a client of the site."""

        def observe(method: str, route: str, status: int, seconds: float) -> None:
            self.measured.append((method, route, status))

        (self.folder / "page.html").write_text('{% extends "people.html" %}{% block content %}{{ text }}{% endblock %}')
        site = PeopleSite(ORIGIN)
        page = site.route("/mfa/{code}", self.show, self.submit, templates=self.folder)
        callback = site.route("/mfa/callback", self.callback, templates=self.folder)
        return client_of(site.app([page, callback], observe), "")


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    """Return the pages of a site."""
    return Pages(tmp_path)


@pytest.mark.parametrize("path", ["/", "/api/v1/admin", "/metrics", "/docs", "/healthz", "/openapi.json", "/sign-in"])
async def test_the_site_has_nothing_else(pages: Pages, path: str) -> None:
    """The API, the console, the metrics and the documentation are unknown paths, with the headers of all pages."""
    async with pages.client() as client:
        answer = await client.get(path)
    assert answer.status_code == 404 and "no such path" in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("error", [None, NotFound("<b>gone"), StoreError("full"), RuntimeError(CODE)])
async def test_every_page_has_strict_headers(pages: Pages, error: Exception | None) -> None:
    """The headers forbid other hosts, inline scripts, frames, caching, referrers and indexing. Texts are escaped."""
    pages.error = error
    async with pages.client() as client:
        answer = await client.get(f"/mfa/{CODE}")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy and "form-action 'self'; " in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "noindex" in answer.headers["x-robots-tag"]
    assert "<b>" not in answer.text and CODE not in answer.text
    assert "set-cookie" not in answer.headers


async def test_a_page_may_name_where_its_forms_lead(pages: Pages) -> None:
    """An identity provider may follow on a form, and no other site."""
    pages.form_to = ("https://id.example.com",)
    async with pages.client() as client:
        answer = await client.get(f"/mfa/{CODE}")
    assert "form-action 'self' https://id.example.com; " in answer.headers["content-security-policy"]


async def test_the_code_stays_out_of_log_and_metrics(pages: Pages) -> None:
    """The log and the metrics have the template of the route instead of the path."""
    pages.error = RuntimeError("x")
    with capture_logs() as logged:
        async with pages.client() as client:
            statuses = [(await client.get(f"/mfa/{CODE}")).status_code]
            statuses += [(await client.get(f"/mfa/{CODE}/more")).status_code]
            statuses += [(await client.post(f"/mfa/{CODE}", content=b"a=1", headers=FORM)).status_code]
            method = await client.put(f"/mfa/{CODE}")
    assert [*statuses, method.status_code] == [500, 404, 500, 405]
    assert method.headers["allow"] == "GET, HEAD, POST"
    assert CODE not in repr(logged)
    assert [route for _, route, _ in pages.measured] == ["/mfa/{code}", "unmatched", "/mfa/{code}", "/mfa/{code}"]


async def test_a_path_without_parameters_is_no_code(pages: Pages) -> None:
    """`/mfa/callback` has its own page, whatever the order of the areas. Its texts are escaped."""
    async with pages.client() as client:
        answer = await client.get("/mfa/callback?state=%3Cscript%3E")
    assert "<h1>Callback</h1>" in answer.text and "&lt;script&gt;" in answer.text


async def test_the_first_form_sets_the_cookie(pages: Pages) -> None:
    """The cookie is for this host over TLS alone, and scripts cannot read it. The browser keeps it until `renew`."""
    async with pages.client() as client:
        first = await client.post(f"/mfa/{CODE}", content=b"a=1&a=2&b=", headers=FORM)
        cookie = first.headers["set-cookie"]
        mine = {**FORM, "cookie": cookie.partition(";")[0]}
        second = await client.post(f"/mfa/{CODE}", content=b"go=", headers=mine)
        third = await client.post(f"/mfa/{CODE}", content=b"renew=", headers=mine)
        planted = await client.post(f"/mfa/{CODE}", headers={**FORM, "cookie": f"{COOKIE}=short"}, content=b"")
    (code, browser, fields), (_, again, _), (_, renewed, _), (_, other, _) = pages.submitted
    assert (code, fields, browser) == (CODE, {"a": "2", "b": ""}, again)
    assert cookie == f"{COOKIE}={browser}; HttpOnly; Path=/; SameSite=lax; Secure" and len(browser) == 43
    assert (second.status_code, second.headers["location"]) == (303, "/me") and "set-cookie" not in second.headers
    assert second.headers["cache-control"] == "no-store"
    assert renewed != browser and renewed in third.headers["set-cookie"]
    assert other not in ("short", browser) and other in planted.headers["set-cookie"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"sec-fetch-site": "same-origin", "origin": "null"}, 200, id="own page without a referrer"),
        pytest.param({"sec-fetch-site": "none"}, 200, id="restored tab"),
        pytest.param({"origin": ORIGIN}, 200, id="older browser"),
        pytest.param({}, 403, id="no word about the site"),
        pytest.param({"origin": "null"}, 403, id="no origin"),
        pytest.param({"origin": "https://sallyport.example.org.evil.test"}, 403, id="longer host"),
        pytest.param({"origin": "http://sallyport.example.org"}, 403, id="without TLS"),
        pytest.param({"origin": "https://sallyport.example.org:8443"}, 403, id="other port"),
        pytest.param({"sec-fetch-site": "same-site", "origin": ORIGIN}, 403, id="other host of the domain"),
        pytest.param({"sec-fetch-site": "cross-site"}, 403, id="other site"),
    ],
)
async def test_only_own_pages_send_forms(pages: Pages, headers: dict[str, str], status: int) -> None:
    """A form of another site changes nothing."""
    form = {"content-type": FORM["content-type"], **headers}
    async with pages.client() as client:
        answer = await client.post(f"/mfa/{CODE}", content=b"", headers=form)
    assert (answer.status_code, len(pages.submitted)) == (status, int(status == 200))


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"a=1", {"content-type": "application/json"}, 415),
        (b"x" * (FORM_LIMIT + 1), {}, 413),
        (b"&".join([b"a=1"] * 100), {}, 400),
        (b"a=\xff", {}, 400),
    ],
)
async def test_an_invalid_form_is_refused(pages: Pages, content: bytes, headers: dict[str, str], status: int) -> None:
    """A form is refused if it has another content type, a large body, too many fields, or octets outside ASCII."""
    async with pages.client() as client:
        answer = await client.post(f"/mfa/{CODE}", content=content, headers={**FORM, **headers})
    assert (answer.status_code, pages.submitted) == (status, [])


async def test_static_files_are_cached_and_below_mfa(pages: Pages) -> None:
    """The address of a file changes with its content. There are no other files."""
    async with pages.client() as client:
        answers = [await client.get(static(name)) for name in TYPES]
        other = await client.get(f"{STATIC}site.py")
    assert [each.status_code for each in answers] == [200, 200] and other.status_code == 404
    assert all("immutable" in each.headers["cache-control"] for each in answers)
    assert "data-passkey" in answers[1].text


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://sallyport.example.org", "https://sallyport.example.org"),
        ("https://Sallyport.example.org:443/base", "https://sallyport.example.org"),
        ("https://sallyport.example.org:8443", "https://sallyport.example.org:8443"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
    ],
)
def test_the_origin_of_a_url(url: str, origin: str) -> None:
    """The origin has the form in which browsers send it."""
    assert origin_of(url) == origin


async def test_turns_go_by_tenant_or_address(tmp_path: Path, certificate: Tls) -> None:
    """The owner of a request is its tenant, if it is known, and else its address or /64 network. The connection stays
    one that counts for its address."""
    visits, known = list[PeopleVisit](), list[bool]()

    async def show(visit: PeopleVisit) -> PeoplePage:
        visits.append(visit)
        if visit.query:
            visit.belongs_to(7)
        peer = PEER.get()
        assert isinstance(peer, Connection)
        known.append(peer.known)
        return PeoplePage("people_error.html", "Hello", {"message": "hello"})

    site = PeopleSite(ORIGIN)
    app = site.app([site.route("/mfa", show, templates=FOLDER)], lambda *_: None)
    async with (
        serving(app, certificate, trusted_proxies=[ip_network("127.0.0.0/8")]) as served,
        served.client() as client,
    ):
        for path, source in (("/mfa", "198.51.100.7"), ("/mfa?known=", "198.51.100.7"), ("/mfa", "2001:db8::1:2")):
            assert (await client.get(path, headers={"x-forwarded-for": source})).status_code == 200
    assert [visit.owner for visit in visits] == ["198.51.100.7", 7, "2001:db8::/64"]
    assert known == [False] * 3


async def test_one_address_does_not_delay_the_pages_of_others() -> None:
    """Pages are rendered one at a time. While many requests of one address wait, that of another one is soon next."""
    rendered, may_render = list[str](), threading.Event()

    class Text:
        """A text that takes as long as the test wants."""

        def __init__(self, source: str) -> None:
            self._source = source

        def __str__(self) -> str:
            may_render.wait(30)
            rendered.append(self._source)
            return self._source

    async def show(visit: PeopleVisit) -> PeoplePage:
        return PeoplePage("people_error.html", "Hello", {"message": Text(visit.source)})

    site = PeopleSite(ORIGIN)
    app = site.app([site.route("/mfa", show, templates=FOLDER)], lambda *_: None)

    async def ask(source: str) -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(source, 1)), base_url=ORIGIN) as client:
            assert (await client.get("/mfa")).status_code == 200

    flood, other = "198.51.100.7", "203.0.113.9"
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask, flood)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, other)
        await trio.testing.wait_all_tasks_blocked()
        may_render.set()
    assert len(rendered) == 21 and rendered.index(other) <= 2
