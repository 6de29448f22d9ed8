"""Tests of pages behind a secret link: their headers, the forms that they accept, and that logs contain no secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
import pytest
from structlog.testing import capture_logs

from sallyport.base.errors import NotFound, StoreError
from sallyport.web.app import create_app
from sallyport.web.link_page import FORM_LIMIT, LinkPage, link_route
from tests.web.sample import client_of

FORM = {"content-type": "application/x-www-form-urlencoded"}
SECRET = "the-secret-of-a-link"


@dataclass
class Site:
    """An app with one link. It records the submitted forms and the measurements."""

    error: Exception | None = None
    submitted: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    measured: list[tuple[str, str, int]] = field(default_factory=list)

    async def show(self, secret: str) -> LinkPage:
        """Return the page."""
        if self.error is not None:
            raise self.error
        return LinkPage("<Title>", f"<p>{len(secret)}</p>")

    async def submit(self, secret: str, fields: Mapping[str, str]) -> LinkPage:
        """Return the page that is shown after the form."""
        self.submitted.append((secret, fields))
        return LinkPage("Done", "", 200)

    def client(self) -> httpx.AsyncClient:
        """Return a client without a token."""

        def observe(method: str, route: str, status: int, seconds: float) -> None:
            self.measured.append((method, route, status))

        route = link_route("/link/{token}", show=self.show, submit=self.submit)
        return client_of(
            create_app([], version="1", observe=observe, not_ready=lambda: [], metrics=None, pages=[route]), ""
        )


@pytest.mark.parametrize("error", [None, NotFound("gone"), StoreError("full"), RuntimeError("x")])
async def test_every_page_has_strict_headers(error: Exception | None) -> None:
    """The headers forbid scripts, frames, other hosts, caching, referrers and indexing, also for error pages."""
    async with Site(error).client() as client:
        answer = await client.get(f"/link/{SECRET}")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "script-src" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "noindex" in answer.headers["x-robots-tag"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in answer.text and "//" not in answer.text
    assert ("&lt;Title&gt;" in answer.text) == (error is None)


async def test_the_text_of_a_page_is_escaped() -> None:
    async with Site(NotFound("<b>gone</b>")).client() as client:
        answer = await client.get(f"/link/{SECRET}")
    assert "<p>&lt;b&gt;gone&lt;/b&gt;</p>" in answer.text


@pytest.mark.parametrize(
    ("error", "status"), [(NotFound("gone"), 404), (StoreError("full"), 503), (RuntimeError(SECRET[:3]), 500)]
)
async def test_the_secret_stays_out_of_log_and_metrics(error: Exception, status: int) -> None:
    """The log and the metrics have the route template instead of the path. An error is shown on the page."""
    site = Site(error)
    with capture_logs() as logged:
        async with site.client() as client:
            answer = await client.get(f"/link/{SECRET}")
            unknown = await client.get(f"/link/{SECRET}/more")
            method = await client.put(f"/link/{SECRET}")
    assert [answer.status_code, unknown.status_code, method.status_code] == [status, 404, 405]
    assert method.headers["allow"] == "GET, HEAD, POST"
    assert SECRET not in repr(logged) and SECRET not in answer.text + unknown.text + method.text
    assert site.measured == [
        ("GET", "/link/{token}", status), ("GET", "unmatched", 404), ("PUT", "/link/{token}", 405),
    ]  # fmt: skip


async def test_a_form_is_submitted() -> None:
    """The fields are decoded.

    If a field has several values, the last one is used. HEAD and GET do not submit the form.
    """
    site = Site()
    async with site.client() as client:
        await client.head(f"/link/{SECRET}?code=1")
        await client.get(f"/link/{SECRET}?code=1")
        done = await client.post(f"/link/{SECRET}", content=b"code=1&code=12+3%20%C3%A4&x=", headers=FORM)
        odd = await client.post(f"/link/{SECRET}", content=b"code=%ff%00", headers=FORM)
        empty = await client.post(f"/link/{SECRET}", content=b"", headers=FORM)
    assert {done.status_code, odd.status_code, empty.status_code} == {200}
    assert site.submitted == [
        (SECRET, {"code": "12 3 ä", "x": ""}), (SECRET, {"code": "\ufffd\0"}), (SECRET, {}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"code=1", {}, 415),
        (b'{"code": "1"}', {"content-type": "application/json"}, 415),
        (b"code=1", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"code=1", {**FORM, "content-encoding": "gzip"}, 415),
        (b"x" * (FORM_LIMIT + 1), FORM, 413),
        (b"code=1", {**FORM, "content-length": "9" * 30}, 413),
        (b"&".join([b"a=1"] * 100), FORM, 400),
        (b"code=\xff", FORM, 400),
    ],
)
async def test_an_invalid_form_is_refused(content: bytes, headers: dict[str, str], status: int) -> None:
    """A form is refused if it has another content type, a large body, too many fields, or octets outside ASCII."""
    site = Site()
    async with site.client() as client:
        answer = await client.post(f"/link/{SECRET}", content=content, headers=headers)
    assert (answer.status_code, site.submitted) == (status, [])
    assert answer.headers["referrer-policy"] == "no-referrer"
