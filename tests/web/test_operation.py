"""Tests of the checks of every operation and their order, and of the limits for bodies, paths and answers."""

import json
import time
from dataclasses import replace
from typing import Annotated

import httpx
import pytest
import trio
from pydantic import AfterValidator
from structlog.testing import capture_logs

from sallyport.base.actor import Actor
from sallyport.base.errors import Refused
from sallyport.base.fair import LONG_S
from sallyport.base.model import Done
from sallyport.web.app import create_app
from sallyport.web.bodies import Body, Id
from sallyport.web.handling import BODY_LIMIT, KEYED_LIMIT, LARGE, MAX_CONTAINERS, MAX_ENTRIES
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate, Role
from tests.passes import PassCounter
from tests.web.sample import (
    FOREIGN_DOMAIN,
    KEYED,
    LIST,
    OTHER_DOMAIN,
    REMOVE,
    RENAME,
    SCOPE,
    SampleOwners,
    SampleTokens,
    client_of,
    exchange,
    make_sample,
    sample_operations,
)

JSON = {"content-type": "application/json"}


async def test_an_answer_has_exactly_the_fields_of_its_model() -> None:
    """Field names are unchanged. The handler gets the parsed body and the caller."""
    sample = make_sample()
    async with client_of(sample.app) as client:
        listed = await client.post(LIST, json={**SCOPE, "search": "sw"})
        renamed = await client.put(RENAME, json={"domainId": "3", "name": "n", "always": "YES", "instanceIds": "7"})
    assert (listed.status_code, listed.json()) == (200, {"network_devices": ["sw"], "totalCount": 1})
    assert listed.headers["cache-control"] == "no-store"
    assert renamed.json() == {"Code": "200", "Message": "n"}
    assert sample.worked == ["admin 0 10", "n True [7]"]


@pytest.mark.parametrize(
    ("role", "body", "status", "error"),
    [
        ("", "{", 401, "missing token"),
        ("nobody", "{", 401, "invalid token"),
        ("wallet", "{", 400, "invalid JSON"),
        ("wallet", '{"orgId":2,"tenantId":1,"domainId":4}', 403, "scope mismatch"),
        ("wallet", '{"orgId":1,"tenantId":2,"domainId":4}', 403, "scope mismatch"),
        ("wallet", f'{{"orgId":1,"tenantId":1,"domainId":{FOREIGN_DOMAIN}}}', 403, "domain not in tenant"),
        ("wallet", '{"orgId":1,"tenantId":1,"domainId":99}', 403, "domain not in tenant"),
        ("wallet", '{"orgId":1,"tenantId":1,"domainId":99999999999999999999999}', 403, "domain not in tenant"),
        (
            *("wallet", '{"orgId":1,"tenantId":1,"domainId":3}', 403),
            "role not allowed: needs admin or operator or auditor or agent, not wallet",
        ),
        ("agent", f'{{"orgId":1,"tenantId":1,"domainId":{OTHER_DOMAIN}}}', 403, "domain not in tenant"),
        ("agent", '{"orgId":1,"tenantId":1,"domainId":3}', 200, None),
        ("auditor", '{"orgId":1,"tenantId":1,"domainId":3}', 200, None),
    ],
)
async def test_checks_have_a_fixed_order(role: str, body: str, status: int, error: str | None) -> None:
    """The checks run in this order: token, body, scope, domain, role.

    The first failure is reported, and the handler runs only if all checks pass.
    """
    sample = make_sample()
    async with client_of(sample.app, role) as client:
        answer = await client.post(LIST, content=body, headers=JSON)
    assert answer.status_code == status
    if error is not None:
        assert answer.json() | {"errors": []} == {"error": error, "code": status, "errors": []}
    assert bool(sample.worked) == (status == 200)


LOCAL = Caller(0, 1, 1, tenant_id=7, role=Role.ADMIN, name="root", is_installation=True)


async def test_an_operation_runs_for_a_caller_without_a_token() -> None:
    """`run` returns the octets of the answer for the given caller. The actor in the audit trail is the local user."""
    worked: list[str] = []
    (listed, *_) = sample_operations(worked, Gate(SampleTokens(), SampleOwners())).all
    assert listed.run is not None
    assert await listed.run(json.dumps({**SCOPE, "search": "sw"}).encode(), LOCAL) == (
        b'{"network_devices":["sw"],"totalCount":1}'
    )
    assert worked == ["root 0 10"]
    assert LOCAL.actor == Actor("command line", "root")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        pytest.param(LIST, "{", "invalid JSON", id="JSON"),
        pytest.param(LIST, {**SCOPE, "pageId": 0}, "invalid pageId", id="field"),
        pytest.param(LIST, {**SCOPE, "orgId": 2}, "scope mismatch", id="scope"),
        pytest.param(LIST, {**SCOPE, "domainId": FOREIGN_DOMAIN}, "domain not in tenant", id="domain"),
        pytest.param(KEYED, {"key": "sp_enrolment"}, "role not allowed: needs admin or operator", id="role"),
        pytest.param(LIST, {**SCOPE, "pageId": "x" * LARGE * 2}, "invalid pageId", id="large"),
    ],
)
async def test_a_caller_without_a_token_passes_the_same_checks(path: str, body: object, message: str) -> None:
    """Body, scope, domain and role are checked. A refusal has the message of the API, and the handler does not run."""
    worked: list[str] = []
    operations = sample_operations(worked, Gate(SampleTokens(), SampleOwners()))
    run = next(each.run for each in operations.all if path in each.paths)
    caller = replace(LOCAL, role=Role.AUDITOR) if path == KEYED else LOCAL
    assert run is not None
    with pytest.raises(Refused, match=message):
        await run(body.encode() if isinstance(body, str) else json.dumps(body).encode(), caller)
    assert worked == []


async def test_the_token_is_checked_before_the_body_is_read() -> None:
    """Without a valid token, no octet of an endless body is read."""
    asked = await exchange(make_sample().app, LIST, JSON | {"x-authorization": "sp_nobody"}, b"x" * 65536)
    assert (asked.status, asked.pulled) == (401, 0)


@pytest.mark.parametrize(
    ("token", "content", "status", "expected"),
    [
        ("", '{"key": "sp_enrolment"}', 200, "enrolment"),
        ("sp_admin", '{"key": "sp_enrolment"}', 200, "enrolment"),
        ("sp_admin", '{"key": null}', 200, "admin"),
        ("sp_nobody", '{"key": "sp_enrolment"}', 401, "invalid token"),
        ("sp_admin", '{"key": "sp_nobody"}', 401, "invalid token"),
        (
            "sp_admin",
            '{"key": "sp_auditor"}',
            403,
            "role not allowed: needs admin or operator or enrolment, not auditor",
        ),
        ("", '{"key": "sp_nobody"}', 401, "invalid token"),
        ("", '{"key": ""}', 401, "missing token"),
        ("", "{", 401, "missing token"),
        ("", '{"key": ["sp_enrolment"]}', 401, "missing token"),
        ("", '{"key": "sp_enrolment"}' + " " * KEYED_LIMIT, 401, "missing token"),
        ("sp_admin", '{"key": "sp_enrolment"}' + " " * KEYED_LIMIT, 200, "enrolment"),
    ],
)
async def test_a_key_in_the_body_replaces_the_token(token: str, content: str, status: int, expected: str) -> None:
    """A key in the body is used whether or not there is a token.

    If both are missing, the answer contains nothing of the body.
    """
    sample = make_sample()
    async with client_of(sample.app, "") as client:
        headers = JSON | ({"x-authorization": token} if token else {})
        answer = await client.post(KEYED, content=content, headers=headers)
    assert (answer.status_code, answer.json() if status == 200 else answer.json()["message"]) == (status, expected)
    assert sample.worked == ([expected] if status == 200 else [])


async def test_authentication_gets_the_address_of_the_connection() -> None:
    """The address is passed on both for a token and for a key in the body."""
    sample = make_sample()
    async with client_of(sample.app) as client:
        await client.post(KEYED, json={"key": "sp_enrolment"})
    assert sample.tokens.sources == ["127.0.0.1", "127.0.0.1"]


async def test_a_body_over_the_limit_is_413() -> None:
    """An endless body is read up to 1 MiB.

    A body with a larger Content-Length is not read at all. A body of 1 MiB is accepted.
    """
    app, headers = make_sample().app, JSON | {"x-authorization": "sp_admin"}
    chunked = await exchange(app, LIST, headers, b" " * 65536)
    declared = await exchange(app, LIST, headers | {"content-length": str(BODY_LIMIT + 1)}, b" " * 65536)
    absurd = await exchange(app, LIST, headers | {"content-length": "9" * 5000}, b" " * 65536)
    async with client_of(app) as client:
        whole = await client.post(LIST, content=b" " * (BODY_LIMIT - 1) + b"{", headers=JSON)
    assert [each.status for each in (chunked, declared, absurd)] == [413, 413, 413]
    assert [each.pulled for each in (chunked, declared, absurd)] == [17, 0, 0]
    errors = [{"field": "body", "message": "the body is larger than 1 MiB"}]
    assert chunked.body == {"error": "the body is larger than 1 MiB", "code": 413, "errors": errors}
    assert whole.status_code == 400


@pytest.mark.parametrize("part", [b"[]", b"{}"], ids=["arrays", "objects"])
async def test_a_body_of_many_containers_is_413(part: bytes) -> None:
    """A body with more than 50,000 objects and arrays is refused before it is parsed."""
    async with client_of(make_sample().app) as client:
        body = b"[" + b",".join([part] * MAX_CONTAINERS) + b"]"
        answer = await client.post(LIST, content=body, headers=JSON | {"x-authorization": "sp_admin"})
    assert (answer.status_code, answer.json()["error"]) == (413, "the body has more than 50000 objects and arrays")


async def test_an_incomplete_body_is_400() -> None:
    """If a client disconnects, the status is 400 and there is no unexpected error."""
    asked = await exchange(make_sample().app, LIST, JSON | {"x-authorization": "sp_admin"}, None)
    assert (asked.status, asked.body["error"]) == (400, "incomplete body")


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/jsonp", 415),
        ("", 415),
    ],
)
async def test_a_body_must_be_json(kind: str, status: int) -> None:
    """Only application/json is accepted, with any parameters."""
    sample = make_sample()
    async with client_of(sample.app) as client:
        answer = await client.post(RENAME, content=b'{"domainId":3,"name":"n"}', headers={"content-type": kind})
    assert answer.status_code == status


async def test_a_compressed_body_is_refused() -> None:
    """A body with a content encoding has the status 415, because its real length is unknown."""
    async with client_of(make_sample().app) as client:
        answer = await client.post(LIST, content=b"\x1f\x8b", headers=JSON | {"content-encoding": "gzip"})
    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "invalid JSON"),
        (b"{", "invalid JSON"),
        (b"\xff{}", "invalid JSON"),
        (b"[" * 40_000, "invalid JSON"),
        (b'{"domainId":' + b"9" * 5000 + b"}", "invalid JSON"),
        (b'{"domainId":3,"name":"\\ud800"}', "invalid JSON"),
        (b'"text"', "invalid body"),
        (b"[]", "invalid body"),
        (b"null", "invalid body"),
        (b'{"name":"n"}', "missing domainId"),
        (b'{"domainId":NaN,"name":"n"}', "invalid domainId"),
        (b'{"domainId":true,"name":"n"}', "invalid domainId"),
        (b'{"domainId":1.5,"name":"n"}', "invalid domainId"),
        (b'{"domainId":"hunter2","name":"n"}', "invalid domainId"),
        (b'{"domainId":3,"name":""}', "invalid name"),
        (b'{"domainId":3,"name":"a\\u0000b"}', "invalid name"),
        (b'{"domainId":3,"name":"n","always":"hunter2"}', "invalid always"),
        (b'{"domainId":3,"name":"n","instanceIds":[1,"hunter2"]}', "invalid instanceIds"),
        (b'{"domainId":3,"name":"n","instanceIds":[9223372036854775808]}', "invalid instanceIds"),
    ],
)
async def test_an_invalid_body_is_400_and_names_the_field(body: bytes, message: str) -> None:
    """The status is never 422, and the answer does not contain a submitted value."""
    sample = make_sample()
    async with client_of(sample.app) as client:
        answer = await client.post(RENAME, content=body, headers=JSON)
    assert (answer.status_code, answer.json()["message"]) == (400, message)
    assert answer.json()["status"] == "Failure"
    assert all(each["field"] and each["message"] for each in answer.json()["errors"])
    assert answer.json()["errors"]
    assert "hunter2" not in answer.text
    assert not sample.worked


async def test_duplicate_keys_are_accepted_and_nested_unknown_fields_are_not() -> None:
    """If a key occurs twice, the last value is used. A deeply nested value of an unknown field is an error like any."""
    sample = make_sample()
    async with client_of(sample.app) as client:
        twice = await client.post(RENAME, content=b'{"domainId":4,"domainId":3,"name":"n"}', headers=JSON)
        deep = b'{"domainId":3,"name":"n","x":' + b"[" * 100 + b"]" * 100 + b"}"
        nested = await client.post(RENAME, content=deep, headers=JSON)
    assert (twice.status_code, nested.status_code) == (200, 400)


async def test_all_errors_of_a_body_are_listed() -> None:
    """`errors` contains every wrong field with its path and the accepted values."""
    async with client_of(make_sample().app) as client:
        listed = await client.post(RENAME, json={"name": "", "instanceIds": ["x"]})
        radius = await client.post(LIST, json={**SCOPE, "pageId": 0, "pageSize": 0})
    fields = [each["field"] for each in listed.json()["errors"]]
    assert fields == ["domainId", "name", "instanceIds.0"]
    assert radius.json() == {
        "error": "invalid pageId",
        "code": 400,
        "errors": [
            {"field": "pageId", "message": "must be a whole number from 1 to 9223372036854775"},
            {"field": "pageSize", "message": "must be a whole number from 1 to 100"},
        ],
    }


@pytest.mark.parametrize("path", [RENAME, "/api/v1/sample/Rename2"])
async def test_every_path_of_an_operation_is_case_sensitive(path: str) -> None:
    """A path with other upper or lower case has the status 404, and so has a path with a trailing slash."""
    async with client_of(make_sample().app) as client:
        right = await client.post(path, json={"domainId": 3, "name": "n"})
        wrong = await client.post(path.replace("sample", "SAMPLE"), json={"domainId": 3, "name": "n"})
        slash = await client.post(path + "/", json={"domainId": 3, "name": "n"})
    assert (right.status_code, wrong.status_code, slash.status_code) == (200, 404, 404)


async def test_an_array_body_accepts_a_single_object() -> None:
    """`list[Model]` also accepts a single object. The error of an entry contains its position."""
    async with client_of(make_sample().app) as client:

        async def remove(body: object) -> httpx.Response:
            return await client.request("DELETE", REMOVE, json=body)

        one, many, none = (
            await remove({"policyId": "1"}),
            await remove([{"policyId": 1}, {"policyId": 2}]),
            await remove([]),
        )
        wrong = await remove([{"policyId": 1}, {}])
    assert (one.json(), many.json(), none.json()) == ([{"policyId": 1}], [{"policyId": 1}, {"policyId": 2}], [])
    assert wrong.json()["errors"] == [{"field": "1.policyId", "message": "is missing"}]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (RENAME, {"authorization": "Bearer sp_admin"}, 200),
        (RENAME, {"authorization": "bearer  sp_admin "}, 200),
        (RENAME, {"authorization": "Basic sp_admin"}, 401),
        (RENAME, {"authorization": "sp_admin"}, 401),
        (RENAME, {"x-authorization": " ", "authorization": "Bearer sp_admin"}, 200),
        (RENAME, {"x-authorization": "sp_nobody", "authorization": "Bearer sp_admin"}, 401),
        (LIST, {"authorization": "Bearer sp_admin"}, 401),
        (LIST, {"x-authorization": "sp_admin"}, 200),
        (LIST, {"x-authorization": "   "}, 401),
    ],
)
async def test_a_bearer_token_is_accepted_under_api_v1_only(path: str, headers: dict[str, str], status: int) -> None:
    """X-Authorization is accepted on every path. It takes precedence over Authorization."""
    async with client_of(make_sample().app, "") as client:
        answer = await client.post(path, json={**SCOPE, "name": "n"} if path == RENAME else SCOPE, headers=headers)
    assert answer.status_code == status


async def test_a_bearer_token_in_the_wrong_header_is_logged_once() -> None:
    """The answer of a radius operation stays `missing token`. The log names the header to use, and no token."""
    async with client_of(make_sample().app, "") as client:
        with capture_logs() as logged:
            answers = [
                await client.post(LIST, json=SCOPE, headers={"authorization": "Bearer sp_admin"}) for _ in range(3)
            ]
            await client.post(RENAME, json=SCOPE)
    assert {(each.status_code, each.text) for each in answers} == {(401, '{"error":"missing token","code":401}')}
    assert logged == [
        {"event": "http_token_in_wrong_header", "log_level": "warning", "path": LIST, "use": "X-Authorization"}
    ]


def test_an_unsafe_declaration_is_refused() -> None:
    """An error is raised at the declaration if the body has a domain or a scope that is not checked, or if the handler
    has no types."""
    operations = Operations("Bad", Gate(SampleTokens(), SampleOwners()))

    class Unclaimed(Body):
        domain_id: Id

    class Unscoped(Body):
        orgId: Id  # noqa: N815

    async def hole(body: Unclaimed, caller: Caller) -> str:
        return ""

    async def other(body: Unscoped, caller: Caller) -> str:
        return ""

    async def untyped(body, caller):  # type: ignore[no-untyped-def]
        return ""

    async def no_model(body: dict[str, str], caller: Caller) -> str:
        return ""

    for work in (hole, other, untyped, no_model):
        with pytest.raises((TypeError, NameError)):
            operations.post("/ad/Hole", roles=READERS)(work)
    assert operations.all == []


async def test_an_array_body_has_a_limited_number_of_entries() -> None:
    """An array that is too long is refused as a whole, without errors for its entries."""
    async with client_of(make_sample().app) as client:
        answer = await client.request("DELETE", REMOVE, json=[{"policyId": 1}] * (MAX_ENTRIES + 1))
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, ["body"])


async def test_costly_small_bodies_are_parsed_one_in_each_pass() -> None:
    """Several bodies that arrive at the same time do not block the event loop."""
    counter, parsed_in = PassCounter(), list[int]()

    def note(value: str) -> str:
        parsed_in.append(counter.passes)
        until = time.thread_time() + LONG_S
        while time.thread_time() < until:
            pass
        return value

    class Noted(Body):
        name: Annotated[str, AfterValidator(note)]

    operations = Operations("Noted", Gate(SampleTokens(), SampleOwners()))

    @operations.post("/api/v1/noted", roles=READERS)
    async def noted(body: Noted, caller: Caller) -> Done:
        """Take a body."""
        return Done(message="noted")

    app = create_app([operations], version="1", observe=lambda *_: None, not_ready=lambda: [], metrics=None)

    async def send() -> None:
        async with client_of(app) as client:
            assert (await client.post("/api/v1/noted", json={"name": "n"})).status_code == 200

    trio.lowlevel.add_instrument(counter)
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(send)
    trio.lowlevel.remove_instrument(counter)
    assert len(set(parsed_in)) == len(parsed_in) == 10
