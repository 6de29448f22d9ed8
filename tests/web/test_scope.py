"""Tests of the caller, roles and scopes."""

from contextlib import ExitStack
from dataclasses import replace

import pytest

from sallyport.base.actor import Actor
from sallyport.base.errors import Forbidden, TooMany, Unauthenticated
from sallyport.web.bodies import Body, InDomain
from sallyport.web.scope import ADMINS, MAX_RUNNING, OPERATORS, READERS, Caller, Gate, Role
from tests.web.sample import SampleOwners, SampleTokens


def gate() -> Gate:
    return Gate(SampleTokens(), SampleOwners())


def caller(role: Role = Role.ADMIN) -> Caller:
    return Caller(1, 1, 1, tenant_id=7, role=role, name="n")


def test_roles_contain_each_other() -> None:
    """An admin has all rights of an operator, and an operator has all rights of a reader."""
    assert ADMINS < OPERATORS < READERS
    assert not READERS & {Role.AGENT, Role.WALLET}


@pytest.mark.parametrize("token", [None, "", "sp_nobody"])
async def test_a_caller_needs_a_valid_token(token: str | None) -> None:
    """None and an empty text count as a missing token. Any unknown text is an invalid token."""
    with pytest.raises(Unauthenticated, match="invalid token" if token else "missing token"):
        await gate().caller(token)


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
        with pytest.raises(TooMany) as refused, one.running(caller()):
            pass
        assert refused.value.pause_s == 1
        with one.running(replace(caller(), tenant_id=8)), one.running(caller(Role.AGENT)):
            pass
    with one.running(caller()):
        pass


def test_the_actor_of_an_administrator() -> None:
    """An administrator of the installation is marked, whichever tenant the person has chosen. So the limits of a tenant
    do not apply, for example to break-glass."""
    root = Caller(0, 1, 1, 7, Role.ADMIN, "root", person="administrator", is_installation=True)
    ann = Caller(0, 1, 1, 7, Role.ADMIN, "ann", person="administrator")
    assert root.actor == Actor("administrator", "root", tenant_id=7, is_installation=True)
    assert ann.actor == Actor("administrator", "ann", tenant_id=7)
