"""Tests of the bodies of errors, whose form depends on the path."""

import pytest
import structlog

from sallyport.base.errors import TooMany, TooManyAtOnce
from sallyport.web.problem import response
from tests.web.sample import FAIL, client_of, make_sample


@pytest.mark.parametrize(
    ("how", "status", "message", "pause"),
    [
        ("store", 503, "the store does not take requests", "5"),
        ("slow", 503, "the search took longer than 10 s: search for a longer text or a shorter time", "5"),
        ("missing", 404, "thing not found", None),
        ("twice", 409, "name taken", None),
    ],
)
async def test_an_exception_of_a_service_has_its_status_and_message(
    how: str, status: int, message: str, pause: str | None
) -> None:
    """Paths below /ad and /network_device have one form of error body. All other paths have another form."""
    with structlog.testing.capture_logs():
        async with client_of(make_sample().app) as client:
            radius = await client.post("/ad/Fail", json={"how": how})
            other = await client.post(FAIL, json={"how": how})
    assert (radius.status_code, radius.json()) == (status, {"error": message, "code": status})
    assert (other.status_code, other.json()) == (status, {"code": status, "status": "Failure", "message": message})
    assert [each.headers.get("retry-after") for each in (radius, other)] == [pause, pause]


def test_a_rate_limit_says_when_to_try_again() -> None:
    """A limit of a minute is over after a minute; too many requests at once are over sooner."""
    pauses = [response(each, "/ad/Fail").headers["retry-after"] for each in (TooMany("x"), TooManyAtOnce("x"))]
    assert pauses == ["60", "1"]


@pytest.mark.parametrize("token", ["", "sp_nobody"])
async def test_a_401_says_how_to_authenticate(token: str) -> None:
    """RFC 9110 section 11.6.1. `Bearer` is named where it is read. The body is as the interface has it."""
    async with client_of(make_sample().app, token) as client:
        radius, other = await client.post("/ad/Fail", json={}), await client.post(FAIL, json={})
        found = await client.get("/ad/nothing")
    key = 'ApiKey realm="sallyport", header="X-Authorization"'
    assert [each.status_code for each in (radius, other, found)] == [401, 401, 404]
    assert radius.headers["www-authenticate"] == key
    assert other.headers["www-authenticate"] == f'Bearer realm="sallyport", {key}'
    assert radius.json() == {"error": "invalid token" if token else "missing token", "code": 401}
    assert "www-authenticate" not in found.headers


async def test_an_unexpected_exception_has_an_id_that_is_in_the_log() -> None:
    """The answer has only the status 500 and the ID. The log has the ID and the traceback."""
    with structlog.testing.capture_logs() as logs:
        async with client_of(make_sample().app) as client:
            answer = await client.post(FAIL, json={"how": "boom"})
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    (entry,) = logs
    assert answer.json()["message"] == f"unexpected error {entry['error_id']}"
    assert "RuntimeError" in entry["trace"]


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("POST", "/nowhere", 404, {"code": 404, "status": "Failure", "message": "no such path"}),
        ("POST", "/api/v1/nowhere", 404, {"code": 404, "status": "Failure", "message": "no such path"}),
        ("POST", "/ad/nowhere", 404, {"error": "no such path", "code": 404}),
        ("GET", "/ad/Fail", 405, {"error": "method not allowed", "code": 405}),
        ("PATCH", FAIL, 405, {"code": 405, "status": "Failure", "message": "method not allowed"}),
        ("OPTIONS", "/healthz", 405, {"code": 405, "status": "Failure", "message": "method not allowed"}),
    ],
)
async def test_unknown_paths_and_methods_have_error_bodies(
    method: str, path: str, status: int, body: dict[str, object]
) -> None:
    """The errors 404 and 405 have the same form as other errors."""
    async with client_of(make_sample().app, "") as client:
        answer = await client.request(method, path)
    assert (answer.status_code, answer.json()) == (status, body)


async def test_405_lists_the_allowed_methods() -> None:
    """The header Allow has the methods of all operations on that path."""
    async with client_of(make_sample().app, "") as client:
        answer = await client.get("/api/v1/sample/rename")
    assert answer.headers["allow"] == "POST, PUT"
