"""What the command line asks: agent.list, agent.show, agent.drift, agent.found, agent.takeover, agent.order,
agent.settings, agent.password, agent.silent, agent.rotate_state_key."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from sallyport.base.agentwire.state import TriggerKind
from sallyport.base.clock import iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.endpoints.agents.bodies import SettingsFields, SettingsShown
from sallyport.endpoints.agents.operations import agent_entry, drift_entry, order_entry, status_entry
from sallyport.endpoints.agents.orders import MOST_WAIT_S
from sallyport.endpoints.agents.service import Agents
from sallyport.endpoints.instances.instance import INACTIVE
from sallyport.endpoints.membership import Action
from sallyport.store.search import Stretch

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""
PAGE = 1000


class ListAgents(Arguments):
    """Of one domain. after: the number of agents to pass over, since a command reads page by page."""

    domain: str
    after: int = Field(default=0, ge=0)


class OneAgent(Arguments):
    """An instance of a domain, by name."""

    domain: str
    instance: str


class ListDrift(ListAgents):
    """Of one domain, or of one instance in it. everything: also what is over."""

    instance: str | None = None
    everything: bool = False


class ListFound(OneAgent):
    """What was discovered on a machine."""

    kind: Literal["account", "group"] = "account"
    after: int = Field(default=0, ge=0)


class TakeOver(OneAgent):
    """Accounts of a machine."""

    accounts: list[str] = Field(min_length=1)
    action: Action


class GiveOrder(OneAgent):
    """An order, and how many seconds to wait for its outcome."""

    kind: TriggerKind
    accounts: list[str] = Field(default_factory=list)
    wait: int = Field(default=0, ge=0, le=MOST_WAIT_S)


class Settings(Arguments):
    """Of a domain, or of one instance in it. said: what is to be another way; nothing: only show."""

    domain: str
    instance: str | None = None
    said: SettingsFields = SettingsFields()


class OneDomain(Arguments):
    """A domain, by name or id."""

    domain: str


class GetPassword(OneAgent):
    """An account of a machine."""

    account: str


def commands(agents: Agents, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""
    return {**_looking(agents, find_domain), **_changing(agents, find_domain)}


def _looking(agents: Agents, find_domain: FindDomain) -> dict[str, Command]:
    async def listing(wanted: ListAgents) -> JSON:
        found, _ = await agents.page(Stretch(find_domain(wanted.domain), wanted.after, PAGE))
        return [agent_entry(each, agents.presence.seen_at(each.instance_id, each.seen_at)) for each in found]

    async def silent(wanted: ListAgents) -> JSON:
        found, total = await agents.page(Stretch(find_domain(wanted.domain), wanted.after, PAGE), INACTIVE)
        return {"total": total, "agents": [{"name": each.name, "seen": iso(each.seen_at)} for each in found]}

    async def show(wanted: OneAgent) -> JSON:
        domain_id = find_domain(wanted.domain)
        return status_entry(await agents.situation(domain_id, await agents.named(domain_id, wanted.instance)))

    async def drift(wanted: ListDrift) -> JSON:
        domain_id = find_domain(wanted.domain)
        instance_id = None if wanted.instance is None else await agents.named(domain_id, wanted.instance)
        found, _ = await agents.reports.drift(
            domain_id, instance_id, lasting=not wanted.everything, limit=PAGE, offset=wanted.after
        )
        return [drift_entry(each) for each in found]

    async def found(wanted: ListFound) -> JSON:
        domain_id = find_domain(wanted.domain)
        instance_id = await agents.named(domain_id, wanted.instance)
        rows, _ = await agents.reports.discovered(instance_id, wanted.kind, PAGE, wanted.after)
        return [{**each.fields, "found": iso(each.at)} for each in rows]

    return {
        "agent.list": command(ListAgents, listing),
        "agent.silent": command(ListAgents, silent),
        "agent.show": command(OneAgent, show),
        "agent.drift": command(ListDrift, drift),
        "agent.found": command(ListFound, found),
    }


def _changing(agents: Agents, find_domain: FindDomain) -> dict[str, Command]:
    async def take_over(wanted: TakeOver) -> JSON:
        domain_id = find_domain(wanted.domain)
        instance_id = await agents.named(domain_id, wanted.instance)
        await agents.take_over(domain_id, instance_id, wanted.accounts, wanted.action)
        return None

    async def order(wanted: GiveOrder) -> JSON:
        domain_id = find_domain(wanted.domain)
        instance_id = await agents.named(domain_id, wanted.instance)
        given = await agents.orders.give(domain_id, [instance_id], wanted.kind, wanted.accounts, wait_s=wanted.wait)
        return order_entry(given[0])

    async def settings(wanted: Settings) -> JSON:
        domain_id = find_domain(wanted.domain)
        instance_id = 0 if wanted.instance is None else await agents.named(domain_id, wanted.instance)
        if said := wanted.said.given():
            await agents.change_settings(domain_id, instance_id, said)
        return SettingsShown.of(await agents.settings(domain_id, instance_id)).model_dump()

    async def password(wanted: GetPassword) -> JSON:
        domain_id = find_domain(wanted.domain)
        instance_id = await agents.named(domain_id, wanted.instance)
        known = await agents.rotations.show(domain_id, instance_id, wanted.account, reveal=True)
        return [{"state": each.state, "since": iso(each.at), "password": each.password} for each in known]

    async def rotate_state_key(wanted: OneDomain) -> JSON:
        await agents.rotate_state_key(find_domain(wanted.domain))
        return None

    return {
        "agent.rotate_state_key": command(OneDomain, rotate_state_key),
        "agent.takeover": command(TakeOver, take_over),
        "agent.order": command(GiveOrder, order),
        "agent.settings": command(Settings, settings),
        "agent.password": command(GetPassword, password),
    }
