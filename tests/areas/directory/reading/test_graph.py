"""Readings of Entra ID through Microsoft Graph: complete readings, delta queries and rate limits."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import trio

from sallyport.areas.directory.entry.entry import Gone, Person, Problem
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.graph import GraphReader, GraphSource
from sallyport.areas.mfa.contract import Behaviour
from sallyport.base.secret import Secret
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from tests.areas import trust
from tests.areas.directory.reading.graph_server import CLIENT_ID, CLIENT_SECRET, TENANT, GraphServer
from tests.areas.directory.reading.readings import Reading, collect
from tests.areas.mfa.web import serving


@pytest.fixture
async def graph() -> AsyncIterator[GraphServer]:
    """A tenant with five users and two groups. One of the groups is a member of the other."""
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
    """Return the tenant as the source of a reading, with the credentials of its application."""
    return GraphSource(TENANT, CLIENT_ID, Secret(CLIENT_SECRET.encode()), server.url, server.url)


async def read(server: GraphServer, cursor: str = "", *, full: bool = True) -> Reading:
    """Run one reading and return its result."""
    with trio.fail_after(60):
        return await collect(
            GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source_of(server), cursor, full=full)
        )


async def test_a_complete_reading(graph: GraphServer) -> None:
    """All pages of users and groups are read, and groups have their members. Attributes get their LDAP names."""
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


async def test_a_reading_of_changes(graph: GraphServer) -> None:
    """A reading of changes returns only new, changed and removed objects. A changed group has all its members."""
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


async def test_an_expired_delta_link_leads_to_a_complete_reading(graph: GraphServer) -> None:
    before = await read(graph)
    graph.rounds.clear()
    after = await read(graph, before.cursor, full=False)
    assert after.complete
    assert len(after.people) == 5


@pytest.mark.parametrize(
    "cursor", ["", "rubbish", "[]", "[1, 2]", '["https://evil.example/", "https://evil.example/"]', "{}", "null"]
)
async def test_a_foreign_or_malformed_cursor_is_ignored(graph: GraphServer, cursor: str) -> None:
    """If the cursor is malformed or has another origin, the reading is complete. No request is sent to that origin."""
    assert (await read(graph, cursor, full=False)).complete


async def test_retry_after_is_obeyed(graph: GraphServer, autojump_clock: trio.testing.MockClock) -> None:
    """After each of two responses with status 429, the request is repeated when the time in Retry-After has passed. No
    entry is lost.
    """
    autojump_clock.autojump_threshold = 0.05
    graph.busy = 2
    began = trio.current_time()
    assert len((await read(graph)).people) == 5
    assert trio.current_time() - began >= 2 * 17


async def test_an_expired_token_is_renewed_once(graph: GraphServer) -> None:
    """If Graph rejects the access token, the reader requests one new token and continues."""
    graph.token_ends = True
    assert len((await read(graph)).people) == 5
    assert graph.tokens == 3


async def test_a_group_deleted_during_the_reading_is_gone(graph: GraphServer) -> None:
    """A group that is deleted after the delta query is returned as Gone, and the reading continues."""
    before = await read(graph)
    graph.add_group("g3", "short-lived")
    del graph.groups["g3"]
    after = await read(graph, before.cursor, full=False)
    assert [gone.external_id for gone in after.all(Gone)] == ["g3"]


async def test_an_unusable_entry_is_reported(graph: GraphServer) -> None:
    """A user or a group without a name is returned as a Problem. The other entries are read."""
    graph.users["u6"] = {"id": "u6"}
    graph.groups["g3"] = {"id": "g3", "displayName": " "}
    reading = await read(graph)
    assert {problem.external_id for problem in reading.all(Problem)} == {"u6", "g3"}
    assert len(reading.people) == 5


async def test_a_link_to_another_origin_is_not_followed(
    graph: GraphServer, autojump_clock: trio.testing.MockClock
) -> None:
    """A link to another origin is not followed, because this would send the access token to that origin."""
    autojump_clock.autojump_threshold = 0.05
    before = json.loads((await read(graph)).cursor)
    links = [f"{graph.url}.evil.example/v1.0/users/delta?$deltatoken=evil", before[1]]
    assert (await read(graph, json.dumps(links), full=False)).complete
    async with serving(graph) as other:
        graph.leads_to = f"http://127.0.0.1:{other.port}"
        with pytest.raises(ReadError, match="another server"):
            await collect(GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source_of(graph)))
        assert other.requests == 0


async def test_wrong_credentials_are_reported(graph: GraphServer) -> None:
    """If the credentials are wrong, the message names the settings to check. It does not contain the secret."""
    source = replace(source_of(graph), secret=Secret(b"wrong-secret"))
    with pytest.raises(ReadError, match="check tenant, clientId and clientSecret") as error:
        await collect(GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source))
    assert "wrong-secret" not in str(error.value)


async def test_a_tenant_without_users_is_an_error() -> None:
    """A tenant without users is an error: an application that may not read users must not remove all people of the
    directory.
    """
    server = GraphServer()
    async with serving(server) as server.web:
        with pytest.raises(ReadError, match="shows no user"):
            await read(server)


@pytest.mark.parametrize("behaviour", [each for each in Behaviour if each in (
    Behaviour.RUBBISH, Behaviour.EMPTY, Behaviour.REDIRECT, Behaviour.HUGE, Behaviour.BROKEN_OFF,
    Behaviour.NO_PROTOCOL, Behaviour.FAIL, Behaviour.SILENT)])  # fmt: skip
async def test_a_failing_service_ends_the_reading(
    graph: GraphServer, behaviour: Behaviour, autojump_clock: trio.testing.MockClock
) -> None:
    """If the service fails in any way, the reading raises ReadError."""
    autojump_clock.autojump_threshold = 0.05
    assert graph.web is not None
    graph.web.behave(behaviour)
    with pytest.raises(ReadError):
        await collect(GraphReader(HttpFactory(egress=ANYWHERE, verify=trust())).read(source_of(graph)))
