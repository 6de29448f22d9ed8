"""Targets of Prometheus: the limits of an answer, and turns while answers are built."""

import json
from collections.abc import Sequence
from threading import Event

import pytest
import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sallyport.areas.devices import targets
from sallyport.areas.devices.rows import ClientTags, DeviceQuery, DeviceRow
from sallyport.base.errors import Conflict
from sallyport.web.scope import Caller, Gate, Role
from tests.areas import Areas
from tests.areas.devices.conftest import Seen


class Tokens:
    """An authenticator that knows one caller."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def authenticate(self, token: str, source: str = "") -> Caller:
        return self._caller


async def ask(areas: Areas, domain: str) -> Response:
    """Request the targets of a domain."""
    caller = Caller(1, 1, 1, areas.tenant, Role.AUDITOR, "prometheus")
    return await answer(route_of(areas, caller), domain)


def route_of(areas: Areas, caller: Caller) -> Route:
    """Return the route of the targets."""
    (route,) = targets.routes(areas.devices, Gate(Tokens(caller), areas.domains))
    assert isinstance(route, Route)
    return route


async def answer(route: Route, domain: str) -> Response:
    """Return the answer to a request of the targets of a domain."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"{targets.PATH}{domain}",
        "path_params": {"domain": domain},
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer x")],
    }
    found = await route.endpoint(Request(scope))
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize("domain", ["0", "999", "007", "x", "1" * 19])
async def test_a_wrong_domain_is_refused(areas: Areas, domain: str) -> None:
    """No id in the path is an unexpected error."""
    assert (await ask(areas, domain)).status_code in (400, 403, 404)


async def test_the_labels_of_an_answer_are_limited(areas: Areas, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many devices may take over long tags of one client."""
    await seen.device("core")
    assert (await ask(areas, str(areas.domain))).status_code == 200
    monkeypatch.setattr(targets, "MAX_CHARACTERS", 10)
    rows, *_ = await areas.devices.page(DeviceQuery(areas.domain))
    with pytest.raises(Conflict, match="over 10 characters"):
        targets.answer_of(rows, areas.clients.tags_of)
    assert (await ask(areas, str(areas.domain))).status_code == 409


async def test_answers_are_built_one_after_the_other(areas: Areas, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise 128 requests of a tenant could fill the memory, and their threads would delay logins."""
    await seen.device("core")
    build, started, second, beside = targets.answer_of, list[int](), Event(), list[bool]()

    def building(rows: Sequence[DeviceRow], client_tags: ClientTags) -> Response:
        started.append(1)
        if len(started) == 1:
            beside.append(second.wait(0.1))
        else:
            second.set()
        return build(rows, client_tags)

    monkeypatch.setattr(targets, "answer_of", building)
    route = route_of(areas, Caller(1, 1, 1, areas.tenant, Role.AUDITOR, "prometheus"))
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(answer, route, str(areas.domain))
    assert (len(started), beside) == (2, [False])


async def test_an_ipv6_address_has_brackets(areas: Areas, seen: Seen) -> None:
    """Prometheus appends a port to the target, which an IPv6 address without brackets makes ambiguous."""
    await seen.device("core", "192.0.2.7")
    rows, *_ = await areas.devices.page(DeviceQuery(areas.domain))
    rows[0].client_ip = "2001:db8::7"
    body = json.loads(bytes(targets.answer_of(rows, areas.clients.tags_of).body))
    assert body[0]["targets"] == ["[2001:db8::7]"]
    assert body[0]["labels"]["__meta_sallyport_address"] == "2001:db8::7"


async def test_keys_with_one_label_keep_their_values(areas: Areas, seen: Seen) -> None:
    """A label has letters and `_` only, so `a-b` and `a_b` would have the same one."""
    await seen.device("core")
    rows, *_ = await areas.devices.page(DeviceQuery(areas.domain))
    rows[0].own_tags = "a-b-c=1\na.b_c=2\na_b-c=3\na_b_c=4\na_b_c_2=5"
    labels = json.loads(bytes(targets.answer_of(rows, areas.clients.tags_of).body))[0]["labels"]
    found = {name: value for name, value in labels.items() if name.startswith("tag_")}
    assert found["tag_a_b_c"] == "4"
    assert found["tag_a_b_c_2"] == "5"
    assert sorted(found.values()) == ["1", "2", "3", "4", "5"]
