"""Entra ID through Microsoft Graph: everything once, then what changes, at the pace that it sets."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import trio

from sallyport.base.secret import Secret
from sallyport.base.setting_values import ANYWHERE
from sallyport.directory.entry import Gone, Person, Problem, Status
from sallyport.directory.reading import ReadError
from sallyport.directory.reading.graph import GraphReader, GraphSource
from sallyport.mfa.contract import Behaviour
from sallyport.outgoing.http import HttpFactory
from tests.areas import trust
from tests.directory.reading.graph_server import CLIENT_ID, CLIENT_SECRET, TENANT, GraphServer
from tests.directory.reading.readings import Reading, heard
from tests.mfa.web import serving


@pytest.fixture
async def graph() -> AsyncIterator[GraphServer]:
    """A tenant of five users and two groups, the one in the other."""
    server = GraphServer()
    async with serving(server) as server.web:
        server.add_user("u1", "ann@corp.example", displayName="Ann Lee", surname="Lee", mail="ann@corp.example",
                        onPremisesSamAccountName="ann", businessPhones=["+1 555", "+1 556"], jobTitle=None)  # fmt: skip
        for number in range(2, 6):
            server.add_user(f"u{number}", f"user{number}@corp.example", accountEnabled=number != 3)
        server.add_group("g1", "vpn", "u1", "u2", "u3", "g2")
        server.add_group("g2", "admins", "u1")
        yield server


def source_of(server: GraphServer) -> GraphSource:
    """The tenant, read by its application."""
    return GraphSource(TENANT, CLIENT_ID, Secret(CLIENT_SECRET.encode()), server.url, server.url)


async def read(server: GraphServer, cursor: str = "", *, full: bool = True) -> Reading:
    """All that one reading tells."""
    with trio.fail_after(60):
        return await heard(
            GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source_of(server), cursor, full=full)
        )


async def test_everything(graph: GraphServer) -> None:
    """Users and groups of all pages, with their members; what they hold is called as in LDAP."""
    reading = await read(graph)
    assert reading.complete
    assert reading.people["ann@corp.example"] == Person(
        external_id="u1",
        dn="id:u1",
        name="ann@corp.example",
        aliases=("ann",),
        status=Status.ACTIVE,
        member_of=(),
        attributes={
            "userprincipalname": ("ann@corp.example",),
            "displayname": ("Ann Lee",),
            "sn": ("Lee",),
            "mail": ("ann@corp.example",),
            "telephonenumber": ("+1 555", "+1 556"),
            "samaccountname": ("ann",),
        },
    )
    assert len(reading.people) == 5
    assert reading.people["user3@corp.example"].status is Status.DISABLED
    assert reading.groups["vpn"].members == ("id:u1", "id:u2", "id:u3", "id:g2")
    assert reading.groups["admins"].members == ("id:u1",)
    assert graph.tokens == 1


async def test_changes(graph: GraphServer) -> None:
    """A reading of changes has new, changed and removed objects only; a changed group has all its members."""
    before = await read(graph)
    assert (await read(graph, before.cursor, full=False)).entries == []
    before = await read(graph)
    graph.add_user("u2", "renamed@corp.example")
    graph.remove("users", "u5")
    graph.add_group("g2", "admins", "u1", "u4")
    graph.remove("groups", "g1")
    after = await read(graph, before.cursor, full=False)
    assert not after.complete
    assert {name: person.external_id for name, person in after.people.items()} == {"renamed@corp.example": "u2"}
    assert after.groups["admins"].members == ("id:u1", "id:u4")
    assert {gone.external_id for gone in after.all(Gone)} == {"u5", "g1"}
    assert (await read(graph, after.cursor, full=False)).entries == []


async def test_a_forgotten_delta_query(graph: GraphServer) -> None:
    """An expired link leads to a complete reading, which is marked as complete."""
    before = await read(graph)
    graph.rounds.clear()
    after = await read(graph, before.cursor, full=False)
    assert after.complete
    assert len(after.people) == 5


@pytest.mark.parametrize(
    "cursor", ["", "rubbish", "[]", "[1, 2]", '["https://evil.example/", "https://evil.example/"]', "{}", "null"]
)
async def test_a_cursor_of_something_else(graph: GraphServer, cursor: str) -> None:
    """A cursor of another origin is ignored, and no request goes to that origin."""
    assert (await read(graph, cursor, full=False)).complete


async def test_its_pace_is_obeyed(graph: GraphServer, autojump_clock: trio.testing.MockClock) -> None:
    """Two refusals with Retry-After: it is asked again after that time, and nothing is lost."""
    autojump_clock.autojump_threshold = 0.05
    graph.busy = 2
    began = trio.current_time()
    assert len((await read(graph)).people) == 5
    assert trio.current_time() - began >= 2 * 17


async def test_a_token_that_ends(graph: GraphServer) -> None:
    """Another one is asked for, once."""
    graph.token_ends = True
    assert len((await read(graph)).people) == 5
    assert graph.tokens == 3


async def test_a_group_that_goes_in_between(graph: GraphServer) -> None:
    """A group that was deleted after the delta query is Gone, and the reading continues."""
    before = await read(graph)
    graph.add_group("g3", "short-lived")
    del graph.groups["g3"]
    after = await read(graph, before.cursor, full=False)
    assert [gone.external_id for gone in after.all(Gone)] == ["g3"]


async def test_what_cannot_be_used_is_told(graph: GraphServer) -> None:
    """A user without a name is a Problem; the others are read."""
    graph.users["u6"] = {"id": "u6"}
    graph.groups["g3"] = {"id": "g3", "displayName": " "}
    reading = await read(graph)
    assert {problem.external_id for problem in reading.all(Problem)} == {"u6", "g3"}
    assert len(reading.people) == 5


async def test_a_link_to_somebody_else(graph: GraphServer, autojump_clock: trio.testing.MockClock) -> None:
    """A link to another origin is not followed: the token would be sent there."""
    autojump_clock.autojump_threshold = 0.05
    before = json.loads((await read(graph)).cursor)
    links = [f"{graph.url}.evil.example/v1.0/users/delta?$deltatoken=evil", before[1]]
    assert (await read(graph, json.dumps(links), full=False)).complete
    async with serving(graph) as other:
        graph.leads_to = f"http://127.0.0.1:{other.port}"
        with pytest.raises(ReadError, match="another server"):
            await heard(GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source_of(graph)))
        assert other.requests == 0


async def test_wrong_credentials(graph: GraphServer) -> None:
    """The admin hears which fields to look at; the secret is not repeated."""
    source = replace(source_of(graph), secret=Secret(b"wrong-secret"))
    with pytest.raises(ReadError, match="check tenant, clientId and clientSecret") as error:
        await heard(GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source))
    assert "wrong-secret" not in str(error.value)


async def test_no_user_is_an_error() -> None:
    """An application without the permission to read users does not empty a directory."""
    server = GraphServer()
    async with serving(server) as server.web:
        with pytest.raises(ReadError, match="shows no user"):
            await read(server)


@pytest.mark.parametrize("behaviour", [each for each in Behaviour if each in (
    Behaviour.RUBBISH, Behaviour.EMPTY, Behaviour.REDIRECT, Behaviour.HUGE, Behaviour.BROKEN_OFF,
    Behaviour.NO_PROTOCOL, Behaviour.FAIL, Behaviour.SILENT)])  # fmt: skip
async def test_a_service_that_fails(
    graph: GraphServer, behaviour: Behaviour, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever it does, the reading ends by an error, and is never complete."""
    autojump_clock.autojump_threshold = 0.05
    assert graph.web is not None
    graph.web.behave(behaviour)
    with pytest.raises(ReadError):
        await heard(GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source_of(graph)))
