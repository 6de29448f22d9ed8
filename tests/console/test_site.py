"""What every page has in common: headers, roles, form tokens, errors and escaping."""

import re
from importlib.resources import files

import httpx
import pytest

from sallyport.console.pages import ALL
from sallyport.web.scope import Role
from tests.console.test_logins import add
from tests.console.visitor import Site, Visitor, text_of

PAGES = [page for area in ALL for page in area.pages]
FORMS = [form for area in ALL for form in area.forms]
TEMPLATES = {each.name: each.read_text() for each in files("sallyport.console").joinpath("templates").iterdir()}
STATIC = files("sallyport.console").joinpath("static")
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
PARAMETER = re.compile(r"\{[^}]*\}")


def address(path: str) -> str:
    """Return the address of a page, with a number for each parameter."""
    return PARAMETER.sub("1", path)


def check_headers(answer: httpx.Response) -> None:
    """Check the headers that each answer of the console must have."""
    headers, path = answer.headers, answer.request.url.path
    assert headers["content-security-policy"] == POLICY, path
    assert headers["x-frame-options"] == "DENY", path
    assert headers["x-content-type-options"] == "nosniff", path
    assert headers["referrer-policy"] == "same-origin", path
    assert headers["cache-control"] == "no-store", path


async def test_every_page_has_strict_headers(admin: Visitor) -> None:
    """No page can be framed, cached or given a foreign script, whatever its status is."""
    for page in PAGES:
        if not page.is_quiet:
            check_headers(await admin.get(address(page.path)))


async def test_every_page_needs_a_session(site: Site) -> None:
    """Without a session, each page leads to the sign-in, and shows nothing."""
    async with site.visitor() as visitor:
        for page in PAGES:
            answer = await visitor.get(address(page.path))
            assert answer.status_code == 303, page.path
            assert answer.headers["location"].startswith("/sign-in"), page.path
            assert answer.text == "", page.path
            check_headers(answer)


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR, Role.AUDITOR])
async def test_every_page_needs_its_role(site: Site, role: Role) -> None:
    """A page whose roles do not contain that of the person is refused."""
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(role))
        for page in PAGES:
            if role not in page.roles:
                assert (await visitor.get(address(page.path))).status_code == 403, page.path


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR, Role.AUDITOR])
async def test_every_form_needs_its_role(site: Site, role: Role) -> None:
    """A form that is sent without its page, by a person without the role, is refused."""
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(role))
        for form in FORMS:
            if role not in form.roles:
                answer = await visitor.send(address(form.path), page="/account")
                assert answer.status_code == 403, form.path


async def test_every_form_needs_the_token_of_the_session(site: Site, admin: Visitor) -> None:
    """Without the token, with that of another session, or from another site, a form is refused."""
    async with site.visitor() as other:
        await other.sign_in(await site.token())
        (foreign,) = set(re.findall(r'name="csrf" value="(\w+)"', (await other.get("/account")).text))
    (own,) = set(re.findall(r'name="csrf" value="(\w+)"', (await admin.get("/account")).text))
    for form in FORMS:
        for fields, headers in (
            ({"csrf": ""}, {}),
            ({"csrf": foreign}, {}),
            ({"csrf": own}, {"sec-fetch-site": "cross-site"}),
            ({"csrf": own}, {"origin": "https://evil.example"}),
        ):
            path = address(form.path)
            if form.has_file:
                answer = await admin.post_file(path, fields, "file", b"", **headers)
            else:
                answer = await admin.http.post(path, data=fields, headers=headers)
            assert answer.status_code == 403, path
            assert "form" in text_of(answer), path


async def test_a_form_of_another_content_type_is_refused(admin: Visitor) -> None:
    """A script of another site cannot send JSON or text as a form."""
    answer = await admin.http.post("/sign-out", content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    assert await admin.is_signed_in()


async def test_a_page_that_does_not_exist_in_the_tenant_is_an_error_page(admin: Visitor) -> None:
    """The error page has the frame of the console, and the reason in words."""
    answer = await admin.get("/account/sessions/999/end")
    assert answer.status_code == 404
    assert "no such session of the console" in text_of(answer)
    assert "Sign out" in answer.text


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
"""The header Accept of a browser that follows a link."""


@pytest.mark.parametrize("path", ["/nothing", "/devices/", "/devices/1/nothing", "/static/other.css", "/enrolled"])
async def test_a_browser_gets_a_page_for_an_unknown_path(site: Site, admin: Visitor, path: str) -> None:
    """A browser gets a page with a way back, with the menu if the person is signed in. A program gets JSON."""
    shown = await admin.get(path, accept=BROWSER)
    async with site.visitor() as stranger:
        bare = await stranger.get(path, accept=BROWSER)
        told = await stranger.get(path, accept="*/*")
    for page in (shown, bare):
        check_headers(page)
        assert page.status_code == 404
        assert "there is no page at this address" in text_of(page)
        assert '<a href="/">' in page.text
    assert "Sign out" in shown.text and "Sign out" not in bare.text
    assert told.status_code == 404
    assert told.json() == {"code": 404, "status": "Failure", "message": "no such path"}


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/ad/nothing", "/network_device/nothing"])
async def test_an_unknown_path_of_the_api_is_json_for_everyone(admin: Visitor, path: str) -> None:
    """A person who tries an operation in the browser gets the answer of the API."""
    answer = await admin.get(path, accept=BROWSER)
    assert answer.status_code == 404
    assert answer.json()["code"] == 404


async def test_a_notice_is_shown_once_and_escaped(admin: Visitor) -> None:
    """A notice is text, wherever it comes from, and the next page does not repeat it."""
    admin.http.cookies.set("__Host-sallyport_notice", "%3Cscript%3Ealert(1)%3C%2Fscript%3E", domain="console.example")
    page = (await admin.get("/account")).text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "alert(1)" not in (await admin.get("/account")).text


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_template_has_nothing_that_the_policy_refuses(name: str) -> None:
    """No template has inline scripts, styles or event handlers, switches off escaping, or loads from another host."""
    text = TEMPLATES[name]
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|\|\s*safe\b|autoescape|https?://", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


def test_the_script_is_small() -> None:
    """The console has one script of at most 300 lines, which evaluates no text."""
    scripts = [each for each in STATIC.iterdir() if each.name.endswith(".js")]
    assert [each.name for each in scripts] == ["console.js"]
    text = scripts[0].read_text()
    assert len(text.splitlines()) <= 300
    assert not re.search(r"\beval\b|new Function|document\.write", text)


async def test_static_files_are_kept_by_browsers(site: Site) -> None:
    """A static file needs no session. Its address changes with its content, so it may be cached."""
    async with site.visitor() as visitor:
        (address,) = re.findall(r'href="(/static/console\.css\?v=\w+)"', (await visitor.get("/sign-in")).text)
        answer = await visitor.get(address)
        assert answer.headers["content-type"] == "text/css; charset=utf-8"
        assert "immutable" in answer.headers["cache-control"]
        assert (await visitor.get("/static/other.css")).status_code == 404
        assert (await visitor.get("/static/..%2fbase.html")).status_code == 404


async def test_a_page_without_a_domain_shows_the_first_one_with_logins(site: Site, admin: Visitor) -> None:
    """The address selects another domain; a domain that does not exist is not replaced."""
    busy = await site.areas.domains.add(site.areas.tenant, "branch")
    chosen = '<option value="{}" selected>'
    assert chosen.format(site.areas.domain) in (await admin.get("/devices")).text
    await add(site, "ann", domain=busy)
    assert chosen.format(busy) in (await admin.get("/devices")).text
    assert chosen.format(site.areas.domain) in (await admin.get(f"/devices?domain={site.areas.domain}")).text
    assert (await admin.get("/devices?domain=99")).status_code == 404
    await add(site, "ann")
    assert chosen.format(site.areas.domain) in (await admin.get("/devices")).text
