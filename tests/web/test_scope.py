"""Tests of the caller, roles and scopes."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import cast

import pytest

from sallyport.base.actor import Actor, Overrides, acting, acting_as
from sallyport.base.errors import Forbidden, TooMany, Unauthenticated
from sallyport.web.bodies import Body, InDomain
from sallyport.web.connections import PEER, Peer
from sallyport.web.scope import (
    ADMINS,
    AGENTS,
    DIRECTORY_AGENTS,
    ENROLMENTS,
    INSTALLATIONS,
    MAX_RUNNING,
    OPERATORS,
    READERS,
    WALLETS,
    Caller,
    Gate,
    NothingManaged,
    Role,
    acting_on,
)
from tests.web.sample import SampleOwners, SampleTokens


def gate() -> Gate:
    return Gate(SampleTokens(), SampleOwners())


def caller(role: Role = Role.ADMIN) -> Caller:
    return Caller(1, 1, 1, tenant_id=7, role=role, name="n")


def test_roles_contain_each_other() -> None:
    """An admin has all rights of an operator, and an operator has all rights of a reader."""
    assert ADMINS < OPERATORS < READERS
    assert not READERS & {Role.AGENT, Role.WALLET}


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        (AGENTS, Role.AGENT),
        (DIRECTORY_AGENTS, Role.DIRECTORY),
        (ENROLMENTS, Role.ENROLMENT),
        (WALLETS, Role.WALLET),
        (INSTALLATIONS, Role.INSTALLATION),
    ],
)
def test_other_roles_stand_alone(roles: frozenset[Role], role: Role) -> None:
    """An operation of agents, wallets or the installation admits no other role."""
    for each in Role:
        with nullcontext() if each is role else pytest.raises(Forbidden, match=f"needs {role}, not {each}"):
            gate().admit(caller(each), [], roles)


def test_the_names_of_roles() -> None:
    """The names are stored with tokens, and are part of the API."""
    names = "admin operator auditor agent directory enrolment wallet installation"
    assert " ".join(Role) == names


@pytest.mark.parametrize("token", [None, "", "sp_nobody"])
async def test_a_caller_needs_a_valid_token(token: str | None) -> None:
    """None and an empty text count as a missing token. Any unknown text is an invalid token."""
    with pytest.raises(Unauthenticated, match="invalid token" if token else "missing token"):
        await gate().caller(token, "192.0.2.1")


def test_every_body_of_an_array_is_checked() -> None:
    """If one domain belongs to another tenant, the whole request is refused."""
    own = InDomain(orgId=1, tenantId=1, domainId=3)
    foreign = InDomain(orgId=1, tenantId=1, domainId=4)
    gate().admit(caller(), [own, own, Body()], ADMINS)
    with pytest.raises(Forbidden, match="domain not in tenant"):
        gate().admit(caller(), [own, foreign], ADMINS)


def test_a_tenant_runs_a_limited_number_of_requests() -> None:
    """A request beyond the limit is refused until another request has ended.

    Requests of other tenants and of agents do not count.
    """
    one = gate()
    with ExitStack() as running:
        for _ in range(MAX_RUNNING):
            running.enter_context(one.running(caller(Role.AUDITOR)))
        with pytest.raises(TooMany, match=f"{MAX_RUNNING} requests in progress") as refused, one.running(caller()):
            pass
        assert refused.value.pause_s == 1
        with one.running(replace(caller(), tenant_id=8)), one.running(caller(Role.AGENT)):
            pass
    with ExitStack() as running:
        for _ in range(MAX_RUNNING):
            running.enter_context(one.running(caller()))
        with pytest.raises(TooMany), one.running(caller()):
            pass


@pytest.mark.parametrize("role", list(Role))
def test_the_actor_of_a_token(role: Role) -> None:
    """The audit trail calls a token with the role of an agent `agent`, and any other one `token`."""
    kind = "agent" if role in {Role.AGENT, Role.DIRECTORY, Role.ENROLMENT} else "token"
    assert caller(role).actor == Actor(kind, "n", token_id=1, tenant_id=7)


def test_the_actor_of_an_administrator() -> None:
    """An administrator of the installation is marked, whichever tenant the person has chosen. So the limits of a tenant
    do not apply, for example to break-glass."""
    root = Caller(0, 1, 1, 7, Role.ADMIN, "root", person="administrator", is_installation=True)
    ann = Caller(0, 1, 1, 7, Role.ADMIN, "ann", person="administrator")
    assert root.actor == Actor("administrator", "root", tenant_id=7, is_installation=True)
    assert ann.actor == Actor("administrator", "ann", tenant_id=7)
    assert replace(root, tenant_id=0).actor.tenant_id is None


class OwnFiles(NothingManaged):
    """Files manage the objects of one operation. `seen` is what the operation was checked with."""

    def concerns(self, path: str) -> bool:
        return path == "/thing"

    async def check(self, tenant_id: int, path: str, bodies: Sequence[Mapping[str, object]], *, override: bool) -> str:
        self.seen = (tenant_id, path, list(bodies), override)
        return "thing x"


async def test_the_actor_overrides_files() -> None:
    """An operation on objects of files is checked with the given fields of each body, and its actor names the objects.
    Any other operation runs as the caller."""
    files = OwnFiles()
    one = Gate(SampleTokens(), SampleOwners(), files)
    bodies = [InDomain(orgId=1, tenantId=1, domainId=3)]
    with await one.acting(caller(), "/thing", bodies, override=True):
        assert acting() == replace(caller().actor, overrides="thing x")
    assert files.seen == (7, "/thing", [{"orgId": 1, "tenantId": 1, "domainId": 3}], True)
    with await one.acting(caller(), "/other", bodies, override=True):
        assert acting() == caller().actor


class Following(NothingManaged):
    """Files manage the objects of every operation if `names` is not empty. `seen` has each check and each followed
    change."""

    def __init__(self, names: str) -> None:
        self._names = names
        self.seen: list[object] = []

    async def check(
        self, tenant_id: int, path: str, bodies: Sequence[Mapping[str, object]], *, override: bool
    ) -> Overrides | None:
        self.seen.append((tenant_id, path, list(bodies), override))
        return Overrides(self._names, print) if self._names else None

    async def follow(self, overridden: Overrides) -> None:
        self.seen.append(overridden.names)


@pytest.mark.parametrize("names", ["thing x", ""])
async def test_a_change_of_many_objects_names_those_of_files(names: str) -> None:
    """The actor names the objects of files, and they are followed once at the end. Otherwise the actor is the same."""
    files = Following(names)
    with acting_as(caller().actor):
        async with acting_on(files, 7, "/thing", [{"id": 1}], override=True):
            actor = acting()
            assert (actor.overrides.names if actor.overrides else "") == names
            assert replace(actor, overrides=None) == caller().actor
        assert acting() == caller().actor
    assert files.seen == [(7, "/thing", [{"id": 1}], True), *([names] if names else [])]


async def test_a_peer_with_a_token_is_known() -> None:
    """A connection whose peer has sent a valid token gets more time for its bodies."""

    class Known:
        times = 0

        def authenticate(self) -> None:
            self.times += 1

    peer = Known()
    previous = PEER.set(cast(Peer, peer))
    try:
        with pytest.raises(Unauthenticated):
            await gate().caller("unknown", "192.0.2.1")
        assert peer.times == 0
        await gate().caller("sp_admin", "192.0.2.1")
        assert peer.times == 1
    finally:
        PEER.reset(previous)
