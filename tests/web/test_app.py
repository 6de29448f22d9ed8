"""Tests of the health checks, the metrics and the OpenAPI description."""

import re

import pytest
import trio
from starlette.requests import Request
from starlette.responses import Response
from structlog.testing import capture_logs
from trio.testing import wait_all_tasks_blocked

from sallyport.base.errors import StoreError
from sallyport.metrics import OPENMETRICS, TEXT
from sallyport.web.app import create_app, create_metrics_app
from sallyport.web.handling import TemplateRoute
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate
from tests.web.sample import (
    FAIL,
    LIST,
    RENAME,
    SCOPE,
    SampleOwners,
    SampleTokens,
    client_of,
    make_sample,
    render_sample,
    sample_operations,
)


async def test_readiness_fails_with_its_reasons_and_health_does_not() -> None:
    """/healthz has the status 200 while the process runs. /readyz has the status 503 while there are reasons, and its
    body has the reasons."""
    sample = make_sample()
    async with client_of(sample.app, "") as client:
        ready = await client.get("/readyz")
        sample.reasons.append("the store does not take writes")
        unready, alive = await client.get("/readyz"), await client.get("/healthz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    assert (unready.status_code, alive.status_code) == (503, 200)
    assert unready.json()["reasons"] == ["the store does not take writes"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", LIST, 200),
        ("POST", RENAME, 400),
        ("POST", FAIL, 500),
        ("GET", RENAME, 405),
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/healthz", 200),
        ("GET", "/openapi.json", 200),
    ],
)
async def test_each_answer_names_its_request(method: str, path: str, status: int) -> None:
    """The id is that of `traceparent`, or a new one, or the caller's own. A malformed id is replaced, not repeated."""
    body = {"how": "bug"} if path == FAIL else SCOPE if path == LIST else {}
    parent = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    ids = []
    with capture_logs():
        async with client_of(make_sample().app) as client:
            for headers in (parent, {}, {}, {**parent, "x-request-id": "my-7"}, {"x-request-id": "my 7"}):
                answer = await client.request(method, path, json=body, headers=headers)
                assert answer.status_code == status
                ids += answer.headers.get_list("x-request-id")
    assert (ids[0], ids[3]) == ("a" * 32, "my-7")
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in (ids[1], ids[2], ids[4])) and len(set(ids)) == 5


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5", OPENMETRICS),
        ("text/plain;q=0.1, Application/OpenMetrics-Text; version=abc", OPENMETRICS),
        ("application/openmetrics-text;version=" + "9" * 5000, OPENMETRICS),
    ],
    ids=range(6),
)
async def test_metrics_have_the_format_that_is_accepted(accept: str, kind: str) -> None:
    """/metrics needs no token and has no redirect. It compresses for a client that accepts gzip."""
    async with client_of(make_sample().app, "") as client:
        answer = await client.get("/metrics", headers={"accept": accept, "accept-encoding": "gzip"})
        plain = await client.get("/metrics", headers={"accept": accept, "accept-encoding": "identity"})
    expected = f"sample 1 of {kind.partition(';')[0]}\n".encode()
    assert (answer.status_code, answer.content) == (plain.status_code, plain.content) == (200, expected)
    assert (answer.headers["content-type"], answer.headers["content-encoding"]) == (kind, "gzip")
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == answer.headers["vary"] == "accept, accept-encoding"


async def test_a_failed_rendering_is_tried_again() -> None:
    """The scrape after an error gets metrics, and not the rendering of another format."""
    outcomes: list[bytes | StoreError] = [b"x 1\n", StoreError("down"), b"x 2\n"]

    async def render(kind: str) -> bytes:
        outcome = outcomes.pop(0)
        if isinstance(outcome, StoreError):
            raise outcome
        return outcome

    app = create_app([], version="1", observe=_unobserved, not_ready=lambda: [], metrics=render)
    openmetrics = {"accept": OPENMETRICS}
    async with client_of(app, "") as client:
        with capture_logs():
            answers = [await client.get("/metrics", headers=each) for each in ({}, openmetrics, openmetrics)]
    assert [each.status_code for each in answers] == [200, 503, 200]
    assert answers[2].text == "x 2\n"


async def test_concurrent_scrapes_share_a_rendering() -> None:
    """Scrapes that arrive during a rendering wait for the next rendering, which they share. A scrape in another format
    has a rendering of its own."""
    renderings, begun, resume = 0, trio.Event(), trio.Event()

    async def render(kind: str) -> bytes:
        nonlocal renderings
        renderings += 1
        begun.set()
        await resume.wait()
        return b"x %d\n" % renderings

    app = create_app([], version="1", observe=_unobserved, not_ready=lambda: [], metrics=render)
    rendered = []
    async with client_of(app) as client, trio.open_nursery() as nursery:

        async def scrape() -> None:
            rendered.append((await client.get("/metrics")).text)

        nursery.start_soon(scrape)
        await begun.wait()
        for _ in range(5):
            nursery.start_soon(scrape)
        await wait_all_tasks_blocked()
        resume.set()
    assert sorted(rendered) == ["x 1\n", *["x 2\n"] * 5]  # the answers may come in any order
    async with client_of(app) as client:
        assert (await client.get("/metrics", headers={"accept": OPENMETRICS})).text == "x 3\n"


async def test_a_separate_metrics_app_has_only_health_and_metrics() -> None:
    """If the metrics have their own listener, the app of the service has no metrics."""
    alone = create_metrics_app(observe=_unobserved, not_ready=lambda: [], metrics=render_sample)
    without = create_app([], version="1", observe=_unobserved, not_ready=lambda: [], metrics=None)
    async with client_of(alone, "") as client:
        found, unknown = await client.get("/metrics"), await client.get("/docs")
    async with client_of(without, "") as client:
        missing = await client.get("/metrics")
    assert (found.status_code, unknown.status_code, missing.status_code) == (200, 404, 404)
    assert unknown.json()["message"] == "no such path"


async def test_the_description_shows_models_security_and_errors() -> None:
    """/openapi.json has the models of requests and answers, the header for the token, and the error bodies.

    It has no status 422.
    """
    async with client_of(make_sample().app, "") as client:
        document = (await client.get("/openapi.json")).json()
    operation, renaming = document["paths"][LIST]["post"], document["paths"][RENAME]["put"]
    reference = {"$ref": "#/components/schemas/ListThings"}
    assert operation["requestBody"]["content"]["application/json"]["schema"] == reference
    assert set(document["components"]["schemas"]["Things"]["properties"]) == {"network_devices", "totalCount"}
    assert operation["security"] == [{"X-Authorization": []}]
    assert renaming["security"] == [{"X-Authorization": []}, {"Bearer": []}]
    problems = [
        answers["4XX"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for answers in (operation["responses"], renaming["responses"])
    ]
    assert problems == ["RadiusProblem", "Problem"]
    assert "422" not in operation["responses"]
    assert operation["description"] == "List things of a domain."


async def test_the_description_is_generated_once() -> None:
    """Concurrent and repeated requests get the same octets."""
    async with client_of(make_sample().app, "") as client:
        answers: list[tuple[str, bytes]] = []

        async def ask(path: str) -> None:
            answers.append((path, (await client.get(path)).content))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask, "/openapi.json")
    assert len(answers) == 3
    assert len(set(answers)) == 1


async def test_the_page_of_the_api_needs_no_other_host() -> None:
    """/docs loads each script and style from this service, under a policy that allows no other source."""
    async with client_of(make_sample().app, "") as client:
        page = await client.get("/docs")
        found = re.findall(r'(?:href|src)="([^"]+)"', page.text)
        found.remove("./")  # the link to the console
        answers = [page, *[await client.get(f"/{path}") for path in found]]
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert {"docs/swagger-ui.css", "docs/swagger-ui-bundle.js", "openapi.json"} <= set(found)
    assert all(each.status_code == 200 and each.content for each in answers)
    policies = {each.headers.get("content-security-policy", "").partition(";")[0] for each in answers}
    assert policies == {"default-src 'self'", ""}  # openapi.json is no page
    assert "<style" not in page.text


async def test_the_page_of_the_api_serves_no_other_file() -> None:
    """A path of /docs that the page does not use is not found, also if the package contains the file."""
    async with client_of(make_sample().app, "") as client:
        for path in ("/docs/swagger-editor.js", "/docs/..%2fcore.py", "/docs/"):
            assert (await client.get(path)).status_code == 404


async def test_requests_are_measured_by_route_template() -> None:
    """The labels are route templates and a fixed set of methods. They never contain text from a request."""
    sample = make_sample()
    async with client_of(sample.app) as client:
        await client.post(LIST, json={})
        await client.get(LIST)
        await client.get("/healthz")
        await client.get("/secret/path")
        await client.request("BREW", "/healthz")
    assert sample.observed == [
        ("POST", LIST, 400),
        ("GET", LIST, 405),
        ("GET", "/healthz", 200),
        ("GET", "unmatched", 404),
        ("other", "/healthz", 405),
    ]


def test_two_operations_on_one_path_are_refused() -> None:
    gate = Gate(SampleTokens(), SampleOwners())
    both: list[Operations] = [sample_operations([], gate), sample_operations([], gate)]
    with pytest.raises(ValueError, match="two operations have the method and path"):
        create_app(both, version="1", observe=_unobserved, not_ready=lambda: [], metrics=None)


async def test_pages_are_served_and_measured() -> None:
    """A page that raises an exception is answered with status 500 and an error ID."""
    seen: list[tuple[str, int]] = []

    async def page(request: Request) -> Response:
        return Response(request.path_params["name"])

    async def broken(request: Request) -> Response:
        raise RuntimeError("hunter2")

    app = create_app(
        [],
        version="1",
        observe=lambda method, route, status, seconds: seen.append((route, status)),
        not_ready=lambda: [],
        metrics=None,
        pages=[TemplateRoute("/pages/{name}", page), TemplateRoute("/broken", broken)],
    )
    async with client_of(app, "") as client:
        good, bad = await client.get("/pages/one"), await client.get("/broken")
    assert (good.text, bad.status_code) == ("one", 500)
    assert bad.json()["message"].startswith("unexpected error ")
    assert seen == [("/pages/{name}", 200), ("/broken", 500)]


def _unobserved(method: str, route: str, status: int, seconds: float) -> None:
    """Discard the measurement."""
