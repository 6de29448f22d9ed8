"""Tests of registration: a machine that registers twice with a key keeps its instance, and an operator can add an
instance."""

from dataclasses import replace

import pytest
import trio

from sallyport.areas.users.instances.instance import Instance, InstanceQuery
from sallyport.base.errors import Conflict, Invalid, NotFound, Unauthenticated
from sallyport.web.scope import Caller, Role
from tests.areas import Areas
from tests.areas.agents.hosts import Host, enrolment, machine


def operator(areas: Areas) -> Caller:
    """Return a caller with an operator's access token."""
    return Caller(1, 1, 1, areas.tenant, Role.OPERATOR, "operator")


async def names(areas: Areas) -> list[str]:
    """Return the names of the domain's instances."""
    rows, _ = await areas.instances.page(InstanceQuery(areas.domain))
    return [row.name for row in rows]


async def test_the_same_machine_is_one_instance(areas: Areas) -> None:
    """A machine that registers again under another name keeps its instance and its first name.

    A field that it sends replaces the stored value. An empty field does not.
    """
    caller, register = await enrolment(areas), areas.agents.machines.register
    described = machine("web", private_ip="10.0.0.7", host_name="web.example")
    first = await register(caller, None, described)
    again = await register(caller, None, replace(described, name="www", private_ip="10.0.0.8", host_name=""))
    assert (first.is_new, again.is_new) == (True, False)
    assert first.instance_id == again.instance_id
    assert first.state_key == again.state_key
    (row,), _ = await areas.instances.page(InstanceQuery(areas.domain))
    assert (row.name, row.private_ip, row.host_name) == ("web", "10.0.0.8", "web.example")


async def test_an_instance_that_an_admin_has_added(areas: Areas) -> None:
    """A machine that registers gets the instance that an admin added under its name. A second machine of that name is
    refused."""
    added = await areas.instances.add(areas.domain, Instance("web"))
    caller = await enrolment(areas)
    assert (await areas.agents.machines.register(caller, None, machine("web"))).instance_id == added
    with pytest.raises(Conflict):
        await areas.agents.machines.register(caller, None, replace(machine("web"), id="another"))


async def test_a_machine_without_a_name(areas: Areas) -> None:
    """An instance without a name is named after the private address.

    If there is none, it is named after the public address, and otherwise after the host name. A machine that has none
    of these is refused.
    """
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
    """A key for one machine registers that machine any number of times.

    It does not register a second machine, and the refused registration creates no instance.
    """
    caller = await enrolment(areas, uses=1)
    for _ in range(3):
        await areas.agents.machines.register(caller, None, machine("web"))
    with pytest.raises(Unauthenticated, match="invalid token"):
        await areas.agents.machines.register(caller, None, machine("db"))
    assert await names(areas) == ["web"]


async def test_a_key_of_a_deleted_instance(areas: Areas) -> None:
    """Registration with the key of a deleted instance raises NotFound."""
    added = await areas.instances.add(areas.domain, Instance("web"))
    caller = await enrolment(areas, added)
    await areas.instances.remove(areas.domain, added)
    with pytest.raises(NotFound):
        await areas.agents.machines.register(caller, None, machine("web"))


async def test_only_an_active_agent_changes_its_addresses(areas: Areas, host: Host) -> None:
    """A caller with a domain key cannot change the addresses of a machine whose agent is active.

    The agent itself can change them.
    """
    await areas.agents.presence.seen(host.id)
    await areas.agents.machines.register(await enrolment(areas), None, machine("web", private_ip="10.6.6.6"))
    own = Caller(9, 1, 1, areas.tenant, Role.AGENT, "web", areas.domain, host.id)
    (row,), _ = await areas.instances.page(InstanceQuery(areas.domain))
    assert row.private_ip == ""
    await areas.agents.machines.register(own, None, machine("web", private_ip="10.0.0.9"))
    (row,), _ = await areas.instances.page(InstanceQuery(areas.domain))
    assert row.private_ip == "10.0.0.9"


async def test_an_agent_that_claims_the_id_of_another_machine(areas: Areas, host: Host) -> None:
    """An agent that registers with the id of another machine keeps its own instance.

    The other machine also keeps its instance.
    """
    other = await Host.register(areas, "db")
    own = Caller(9, 1, 1, areas.tenant, Role.AGENT, "web", areas.domain, host.id)
    await areas.agents.machines.register(own, None, machine("db"))
    caller = await enrolment(areas)
    for name, instance_id in (("web", host.id), ("db", other.id)):
        assert (await areas.agents.machines.register(caller, None, machine(name))).instance_id == instance_id
    bound = await enrolment(areas, host.id)
    await areas.agents.machines.register(bound, None, machine("db"))
    assert (await areas.agents.machines.register(caller, None, machine("db"))).instance_id == other.id


async def test_concurrent_registrations(areas: Areas) -> None:
    """If several operators add the same name at the same time, one of them succeeds.

    If several agents of one machine register at the same time, they all get the same instance.
    """
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
    """If an operator adds a machine, an instance without an agent is created."""
    made = await areas.agents.machines.register(operator(areas), areas.domain, machine("web"))
    assert made.state_key == b""
    with pytest.raises(NotFound):
        await areas.agents.agent(areas.domain, made.instance_id)
    with pytest.raises(Invalid, match="missing domainId"):
        await areas.agents.machines.register(operator(areas), None, machine("db"))
