"""Objects of cloud directories that lack values: an object changes what it names, and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind, User
from sallyport.areas.directory.imports.job import Job
from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.directory.reading.graph_server import CLIENT_ID, CLIENT_SECRET, TENANT, GraphServer
from tests.areas.directory.reading.okta_server import TOKEN, OktaServer
from tests.areas.directory.world import groups_of, members, over
from tests.areas.mfa.web import serving

ANN, BEN = "ann@corp.example", "ben@corp.example"
EARLY, LATE, LATER = "2026-01-01T08:00:00.000Z", "2026-01-02T08:00:00.000Z", "2026-01-03T08:00:00.000Z"
Object = dict[str, object]


class Cloud:
    """A directory that is read into the store."""

    def __init__(self, areas: Areas, name: str) -> None:
        self.areas = areas
        self._name = name

    async def read(self, *, full: bool = False) -> Job:
        """Read the changes, or all entries, and return the finished import."""
        directories = self.areas.directory.directories
        job = await over(self.areas, await directories.sync(self.areas.domain, self._name, full=full))
        assert job.state == "DONE", job.message
        return job

    async def user(self, name: str = ANN) -> User:
        """Return a person."""
        users, _ = await self.areas.directory.directories.users(ListQuery(self.areas.domain, 0, 100), "")
        return next(user for user in users if user.name == name)

    async def users(self) -> list[str]:
        """Return the names of all people."""
        users, _ = await self.areas.directory.directories.users(ListQuery(self.areas.domain, 0, 100), "")
        return [user.name for user in users]


@asynccontextmanager
async def cloud(areas: Areas, said: DirectoryConfiguration) -> AsyncIterator[Cloud]:
    """Save a directory and read it once. Run the imports until the block ends."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.directory.jobs.run)
        await areas.directory.directories.save([(areas.domain, said)])
        directory = Cloud(areas, said.name)
        await directory.read()
        yield directory
        nursery.cancel_scope.cancel()


@pytest.fixture
async def graph() -> AsyncIterator[GraphServer]:
    """A tenant. ann is disabled and has two further names; ben is active; both are in the group vpn."""
    server = GraphServer()
    async with serving(server) as server.web:
        server.add_user(
            "u1", ANN, accountEnabled=False, displayName="Ann Lee", mail=ANN, department="IT",
            onPremisesSamAccountName="ann", onPremisesUserPrincipalName="ann@corp.local",
        )  # fmt: skip
        server.add_user("u2", BEN)
        server.add_group("g1", "vpn", "u1", "u2")
        yield server


def entra(server: GraphServer) -> DirectoryConfiguration:
    """Return the configuration of the tenant."""
    settings = {"tenant": TENANT, "clientId": CLIENT_ID}
    return DirectoryConfiguration(
        "c", DirectoryKind.GRAPH, app_url=server.url, settings=settings, secret=CLIENT_SECRET.encode()
    )


@pytest.mark.parametrize(
    "change",
    [
        {"displayName": "Ann Lea"}, {"displayName": "Ann Lea", "accountEnabled": None},
        {"userPrincipalName": ANN, "displayName": "Ann Lea"}, {"displayName": "Ann Lea", "accountEnabled": "true"},
        {"displayName": "Ann Lea", "userPrincipalName": None},
    ],
    ids=str,
)  # fmt: skip
async def test_a_change_without_a_status_keeps_the_status(areas: Areas, graph: GraphServer, change: Object) -> None:
    """A change that does not state whether the account is enabled does not activate a disabled person. All values that
    it does not name are kept.
    """
    async with cloud(areas, entra(graph)) as directory:
        graph.change("users", {"id": "u1", **change})
        job = await directory.read()
        ann = await directory.user()
        assert (job.updated, job.failed) == (1, 0)
        assert (ann.status, ann.display_name, ann.email, ann.upn) == ("disabled", "Ann Lea", ANN, ANN)
        assert '"department": "IT"' in ann.fields
        for name in ("ann", "ann@corp.local"):
            assert await groups_of(areas, name) == {"vpn"}


async def test_a_change_of_the_status_alone_disables(areas: Areas, graph: GraphServer) -> None:
    async with cloud(areas, entra(graph)) as directory:
        graph.change("users", {"id": "u2", "accountEnabled": False})
        assert (await directory.read()).failed == 0
        assert (await directory.user(BEN)).status == "disabled"
        graph.change("users", {"id": "u2", "accountEnabled": True})
        await directory.read()
        assert (await directory.user(BEN)).status == "active"


async def test_a_disabled_person_with_an_invalid_name_is_disabled(areas: Areas, graph: GraphServer) -> None:
    """An object with a name that is not valid is reported. If it disables the account, the account is disabled."""
    async with cloud(areas, entra(graph)) as directory:
        graph.change("users", {"id": "u2", "accountEnabled": False, "userPrincipalName": "\n"})
        assert (await directory.read()).failed == 1
        assert (await directory.user(BEN)).status == "disabled"


async def test_a_named_value_is_changed_or_deleted(areas: Areas, graph: GraphServer) -> None:
    """A value that is null is deleted. A new login name replaces the old one, and the further names are kept."""
    async with cloud(areas, entra(graph)) as directory:
        graph.change("users", {"id": "u1", "userPrincipalName": "lee@corp.example", "department": None, "mail": None,
                               "onPremisesSamAccountName": "lee"})  # fmt: skip
        await directory.read()
        lee = await directory.user("lee@corp.example")
        assert (lee.status, lee.email, lee.display_name) == ("disabled", "", "Ann Lee") and "IT" not in lee.fields
        found = [await groups_of(areas, name) for name in ("lee", "ann@corp.local", "ann", ANN)]
        assert found == [{"vpn"}, {"vpn"}, frozenset(), frozenset()]


async def test_a_new_account_needs_a_name_and_a_status(areas: Areas, graph: GraphServer) -> None:
    """A new account without a status is not imported. With a name and a status, it is, whatever else is missing."""
    async with cloud(areas, entra(graph)) as directory:
        graph.change("users", {"id": "u3", "userPrincipalName": "cid@corp.example"})
        graph.change("users", {"id": "u4", "accountEnabled": True})
        graph.change("users", {"id": "u5", "userPrincipalName": "eve@corp.example", "accountEnabled": True})
        job = await directory.read()
        assert (job.added, job.failed) == (1, 2) and "only a part of a new account" in job.errors
        assert await directory.users() == [ANN, BEN, "eve@corp.example"]


async def test_a_full_reading_without_a_status_keeps_the_status(areas: Areas, graph: GraphServer) -> None:
    """A full reading removes the values that it does not find. It neither removes nor activates an account without a
    status.
    """
    async with cloud(areas, entra(graph)) as directory:
        graph.users["u1"] = {"id": "u1", "userPrincipalName": ANN}
        graph.users["u3"] = {"id": "u3", "userPrincipalName": "cid@corp.example"}
        job = await directory.read(full=True)
        ann = await directory.user()
        assert (job.failed, job.removed, ann.status, ann.email, ann.fields) == (1, 0, "disabled", "", "{}")


@pytest.mark.parametrize("named", [{}, {"displayName": None}, {"displayName": " "}], ids=str)
async def test_a_group_without_a_name_loses_its_members(areas: Areas, graph: GraphServer, named: Object) -> None:
    """A group of which only the members are stated keeps its name, and a removed member is removed."""
    async with cloud(areas, entra(graph)) as directory:
        graph.members["g1"] = ["u2"]
        removed = {"id": "u1", "@removed": {"reason": "deleted"}, "@odata.type": "#microsoft.graph.user"}
        graph.change("groups", {"id": "g1", "members@delta": [removed], **named})
        assert (await directory.read()).failed == 0
        assert await members(areas) == {"vpn": 1} and await groups_of(areas, ANN) == frozenset()


async def test_a_large_group_without_a_name_keeps_its_name(areas: Areas, graph: GraphServer) -> None:
    async with cloud(areas, entra(graph)) as directory:
        graph.page = 1000
        graph.members["g1"] = ["u2", *(f"x{number}" for number in range(300))]
        graph.change("groups", {"id": "g1", "members@delta": []})
        assert (await directory.read()).failed == 0
        assert await members(areas) == {"vpn": 1} and await groups_of(areas, ANN) == frozenset()


async def test_a_new_group_needs_a_name(areas: Areas, graph: GraphServer) -> None:
    async with cloud(areas, entra(graph)) as directory:
        graph.groups["g2"], graph.members["g2"] = {"id": "g2"}, ["u1"]
        graph.change("groups", {"id": "g2", "members@delta": [{"id": "u1"}]})
        job = await directory.read()
        assert job.failed == 1 and set(await members(areas)) == {"vpn"}


@pytest.mark.parametrize("reason", ["changed", "deleted"])
async def test_a_removed_account_is_removed(areas: Areas, graph: GraphServer, reason: str) -> None:
    async with cloud(areas, entra(graph)) as directory:
        graph.change("users", {"id": "u2", "@removed": {"reason": reason}})
        await directory.read()
        assert await directory.users() == [ANN]


# --- Okta -----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def okta() -> AsyncIterator[OktaServer]:
    """An organization. ann is suspended; ben is active; both are in the group vpn."""
    server = OktaServer()
    async with serving(server) as server.web:
        server.add_user("u1", ANN, EARLY, "SUSPENDED", displayName="Ann Lee", email=ANN, department="IT")
        server.add_user("u2", BEN, EARLY)
        server.add_group("g1", "vpn", EARLY, "u1", "u2")
        yield server


def organization(server: OktaServer) -> DirectoryConfiguration:
    """Return the configuration of the organization."""
    return DirectoryConfiguration("c", DirectoryKind.OKTA, app_url=server.url, secret=TOKEN.encode())


@pytest.mark.parametrize(
    "change",
    [
        {"profile": {"login": ANN, "displayName": "Ann Lea", "email": ANN, "department": "IT"}},
        {"profile": {"displayName": "Ann Lea"}, "status": None},
        {"profile": {"displayName": "Ann Lea"}, "status": "SOMETHING_NEW"},
    ],
    ids=str,
)
async def test_a_user_without_a_status_keeps_the_status(areas: Areas, okta: OktaServer, change: Object) -> None:
    """A user of Okta without a status, or with one that is not known, does not become active."""
    async with cloud(areas, organization(okta)) as directory:
        okta.users[0] = {"id": "u1", "lastUpdated": LATE, **change}
        assert (await directory.read()).failed == 0
        ann = await directory.user()
        assert (ann.status, ann.display_name, ann.email) == ("disabled", "Ann Lea", ANN)
        assert '"department": "IT"' in ann.fields


@pytest.mark.parametrize("status", ["SUSPENDED", "STAGED"])
async def test_a_user_without_a_profile_is_disabled(areas: Areas, okta: OktaServer, status: str) -> None:
    async with cloud(areas, organization(okta)) as directory:
        okta.users[1] = {"id": "u2", "lastUpdated": LATE, "status": status}
        assert (await directory.read()).failed == 0
        assert (await directory.user(BEN)).status == "disabled"
        okta.users[1] = {"id": "u2", "lastUpdated": LATER, "status": "DEPROVISIONED"}
        await directory.read()
        assert await directory.users() == [ANN]


@pytest.mark.parametrize("full", [True, False])
async def test_a_new_user_without_a_status_is_not_imported(areas: Areas, okta: OktaServer, full: bool) -> None:
    async with cloud(areas, organization(okta)) as directory:
        okta.users.append({"id": "u3", "lastUpdated": LATE, "status": "", "profile": {"login": "cid@corp.example"}})
        assert (await directory.read(full=full)).failed == 1
        assert await directory.users() == [ANN, BEN]


async def test_a_group_without_a_profile_loses_its_members(areas: Areas, okta: OktaServer) -> None:
    async with cloud(areas, organization(okta)) as directory:
        okta.members["g1"] = ["u2"]
        okta.groups[0] = {"id": "g1", "type": "OKTA_GROUP", "lastMembershipUpdated": LATE}
        assert (await directory.read()).failed == 0
        assert await members(areas) == {"vpn": 1}


async def test_many_deactivated_users_are_removed_without_a_confirmation(areas: Areas, okta: OktaServer) -> None:
    """Okta says of each user that it was deactivated. Users that are only missing in the list would need a confirmation
    if they were most of the users."""
    okta.page = 50
    for number in range(30):
        okta.add_user(f"m{number}", f"m{number}@corp.example", EARLY)
    async with cloud(areas, organization(okta)) as directory:
        for number in range(30):
            okta.add_user(f"m{number}", f"m{number}@corp.example", LATE, "DEPROVISIONED")
        assert (await directory.read()).removed == 30
