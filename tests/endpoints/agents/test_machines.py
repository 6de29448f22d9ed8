"""Registration: a machine that registers again by a key is the same instance; an operator adds one."""

from dataclasses import replace

import pytest
import trio

from sallyport.base.errors import Conflict, Invalid, NotFound, Unauthenticated
from sallyport.endpoints.instances.instance import InstanceQuery, NewInstance
from sallyport.web.scope import Caller, Role
from tests.areas import Areas
from tests.endpoints.agents.hosts import Host, enrolment, machine


def operator(areas: Areas) -> Caller:
    """Somebody with an access token."""
    return Caller(1, 1, 1, areas.tenant, Role.OPERATOR, "operator")


async def names(areas: Areas) -> list[str]:
    """The instances of the domain."""
    rows, _ = await areas.instances.page(InstanceQuery(areas.domain))
    return [row.name for row in rows]


async def test_the_same_machine_is_one_instance(areas: Areas) -> None:
    """By its id also under another name; its addresses are what it told last, and what it does not tell stays."""
    caller, register = await enrolment(areas), areas.agents.machines.register
    told = machine("web", private_ip="10.0.0.7", host_name="web.example")
    first = await register(caller, None, told)
    again = await register(caller, None, replace(told, name="www", private_ip="10.0.0.8", host_name=""))
    assert (first.is_new, again.is_new) == (True, False)
    assert first.instance_id == again.instance_id
    assert first.state_key == again.state_key
    (row,), _ = await areas.instances.page(InstanceQuery(areas.domain))
    assert (row.name, row.private_ip, row.host_name) == ("web", "10.0.0.8", "web.example")


async def test_an_instance_that_an_admin_has_added(areas: Areas) -> None:
    """Is taken by the machine of its name; a second machine of that name is refused."""
    added = await areas.instances.add(areas.domain, NewInstance("web"))
    caller = await enrolment(areas)
    assert (await areas.agents.machines.register(caller, None, machine("web"))).instance_id == added
    with pytest.raises(Conflict):
        await areas.agents.machines.register(caller, None, replace(machine("web"), id="another"))


async def test_without_a_name(areas: Areas) -> None:
    """It is called after its private address, else its public one, else its host name; without any it is refused."""
    caller = await enrolment(areas)
    for fields in (
        {"private_ip": "10.0.0.1", "public_ip": "192.0.2.1"},
        {"public_ip": "192.0.2.2"},
        {"host_name": "h.example"},
    ):
        await areas.agents.machines.register(caller, None, replace(machine(), id=str(fields), **fields))
    assert await names(areas) == ["10.0.0.1", "192.0.2.2", "h.example"]
    with pytest.raises(Invalid, match="missing instanceName"):
        await areas.agents.machines.register(caller, None, replace(machine(), id="x"))


async def test_uses_of_a_key(areas: Areas) -> None:
    """A key for one machine registers that one as often as it comes, and no second one; nothing is left of what was
    refused."""
    caller = await enrolment(areas, uses=1)
    for _ in range(3):
        await areas.agents.machines.register(caller, None, machine("web"))
    with pytest.raises(Unauthenticated, match="invalid token"):
        await areas.agents.machines.register(caller, None, machine("db"))
    assert await names(areas) == ["web"]


async def test_an_instance_of_a_key_that_is_gone(areas: Areas) -> None:
    """Its keys are gone with it; one that is asked about in between finds nothing."""
    added = await areas.instances.add(areas.domain, NewInstance("web"))
    caller = await enrolment(areas, added)
    await areas.instances.remove(areas.domain, added)
    with pytest.raises(NotFound):
        await areas.agents.machines.register(caller, None, machine("web"))


async def test_what_an_active_agent_has_told_stands(areas: Areas, host: Host) -> None:
    """Whoever has a key of the domain does not change the addresses of a machine whose agent speaks for itself."""
    await areas.agents.presence.seen(host.id)
    await areas.agents.machines.register(await enrolment(areas), None, machine("web", private_ip="10.6.6.6"))
    own = Caller(9, 1, 1, areas.tenant, Role.AGENT, "web", areas.domain, host.id)
    (row,), _ = await areas.instances.page(InstanceQuery(areas.domain))
    assert row.private_ip == ""
    await areas.agents.machines.register(own, None, machine("web", private_ip="10.0.0.9"))
    (row,), _ = await areas.instances.page(InstanceQuery(areas.domain))
    assert row.private_ip == "10.0.0.9"


async def test_an_agent_that_says_to_be_another_machine(areas: Areas, host: Host) -> None:
    """Stays what it is: the other one is found by its id as before."""
    other = await Host.register(areas, "db")
    own = Caller(9, 1, 1, areas.tenant, Role.AGENT, "web", areas.domain, host.id)
    await areas.agents.machines.register(own, None, machine("db"))
    caller = await enrolment(areas)
    for name, instance_id in (("web", host.id), ("db", other.id)):
        assert (await areas.agents.machines.register(caller, None, machine(name))).instance_id == instance_id
    bound = await enrolment(areas, host.id)
    await areas.agents.machines.register(bound, None, machine("db"))
    assert (await areas.agents.machines.register(caller, None, machine("db"))).instance_id == other.id


async def test_registrations_at_once(areas: Areas) -> None:
    """Of several operators who add the same name at the same time one succeeds; agents of one machine get one
    instance."""
    added, refused = list[int](), list[Conflict]()
    caller = await enrolment(areas)
    by_key = list[int]()

    async def add() -> None:
        try:
            made = await areas.agents.machines.register(operator(areas), areas.domain, machine("web"))
            added.append(made.instance_id)
        except Conflict as conflict:
            refused.append(conflict)

    async def register() -> None:
        by_key.append((await areas.agents.machines.register(caller, None, machine("db"))).instance_id)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(add)
            nursery.start_soon(register)
    assert (len(added), len(refused)) == (1, 4)
    assert len(set(by_key)) == 1
    assert sorted(await names(areas)) == ["db", "web"]


async def test_an_operator_registers_no_agent(areas: Areas) -> None:
    """A machine that an operator adds is an instance, and has no agent until one comes."""
    made = await areas.agents.machines.register(operator(areas), areas.domain, machine("web"))
    assert made.state_key == b""
    with pytest.raises(NotFound):
        await areas.agents.agent(areas.domain, made.instance_id)
    with pytest.raises(Invalid, match="missing domainId"):
        await areas.agents.machines.register(operator(areas), None, machine("db"))
