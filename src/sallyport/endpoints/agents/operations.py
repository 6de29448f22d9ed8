"""The HTTP operations about agents, for who looks after them: /api/v1/agent/*."""

import json

from sallyport.base.clock import iso
from sallyport.endpoints.agents import model
from sallyport.endpoints.agents.orders_repo import Order
from sallyport.endpoints.agents.repo import Agent
from sallyport.endpoints.agents.reports_repo import StoredDrift, StoredReport
from sallyport.endpoints.agents.service import Agents, Situation
from sallyport.endpoints.membership import Action
from sallyport.store.search import Stretch
from sallyport.web.operation import Done, Operations
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate


def operations(agents: Agents, gate: Gate) -> Operations:
    """The operations of this slice that admins ask for."""
    about = Operations("Endpoint agents", gate)
    _declare_looking(about, agents)
    _declare_findings(about, agents)
    _declare_changing(about, agents)
    return about


def _declare_looking(about: Operations, agents: Agents) -> None:
    @about.post("/api/v1/agent/listAgents", roles=READERS)
    async def list_agents(body: model.ListAgents, caller: Caller) -> model.AgentList:
        """The agents of a domain, ordered by instance."""
        page = body.page()
        found, total = await agents.page(Stretch(body.domainId, page.offset, page.size), body.status)
        seen = agents.presence.seen_at
        return model.AgentList(
            agents=[agent_entry(each, seen(each.instance_id, each.seen_at)) for each in found], totalCount=total
        )

    @about.post("/api/v1/agent/agentStatus", roles=READERS)
    async def agent_status(body: model.OneAgent, caller: Caller) -> model.AgentStatus:
        """How it stands with a machine: what is wanted of it, what its agent said last, and its orders."""
        return await status_of(agents, body.domainId, body.instanceId)

    @about.post("/api/v1/agent/getSettings", roles=READERS)
    async def get_settings(body: model.GetSettings, caller: Caller) -> model.SettingsShown:
        """How the agents of a domain behave, or that of one machine."""
        return model.SettingsShown.of(await agents.settings.get(body.domainId, body.instanceId))

    @about.post("/api/v1/agent/getPassword", roles=READERS)
    async def get_password(body: model.GetPassword, caller: Caller) -> model.PasswordList:
        """The passwords that may be in force for an account on a machine, which an auditor does not see. Each reading
        is kept in the audit trail."""
        reveal = caller.role in OPERATORS
        known = await agents.rotations.show(body.domainId, body.instanceId, body.userName, reveal=reveal)
        return model.PasswordList(
            passwords=[
                model.PasswordEntry(password=each.password, state=each.state, since=iso(each.at)) for each in known
            ]
        )


def _declare_findings(about: Operations, agents: Agents) -> None:
    @about.post("/api/v1/agent/listReports", roles=READERS)
    async def list_reports(body: model.ListReports, caller: Caller) -> model.ReportList:
        """The newest reports of an agent, the newest first; twenty are kept."""
        await agents.must_be(body.domainId, body.instanceId)
        page = body.page()
        found, total = await agents.reports.newest(body.instanceId, page.size, page.offset)
        return model.ReportList(reports=[report_entry(each) for each in found], totalCount=total)

    @about.post("/api/v1/agent/listDrift", roles=READERS)
    async def list_drift(body: model.ListDrift, caller: Caller) -> model.DriftList:
        """What someone else has changed on a domain's machines, or on one, the newest first."""
        page = body.page()
        found, total = await agents.reports.drift(
            body.domainId, body.instanceId, lasting=body.lasting, limit=page.size, offset=page.offset
        )
        return model.DriftList(drift=[drift_entry(each) for each in found], totalCount=total)

    @about.post("/api/v1/agent/listDiscovered", roles=READERS)
    async def list_discovered(body: model.ListDiscovered, caller: Caller) -> model.DiscoveredList:
        """The accounts of a machine, or its groups, as its agent found them, by name."""
        await agents.must_be(body.domainId, body.instanceId)
        page = body.page()
        found, total = await agents.reports.discovered(body.instanceId, body.kind, page.size, page.offset)
        entries = [
            model.DiscoveredEntry(name=each.name, userId=each.user_id or 0, found=iso(each.at), told=dict(each.fields))
            for each in found
        ]
        return model.DiscoveredList(discovered=entries, totalCount=total)


def _declare_changing(about: Operations, agents: Agents) -> None:
    @about.post("/api/v1/agent/takeOver", roles=OPERATORS)
    async def take_over(body: model.TakeOver, caller: Caller) -> Done:
        """Let an agent manage accounts that it has discovered, or no more; all or none."""
        await agents.settings.take_over(body.domainId, body.instanceId, body.userNames, body.action)
        done = "taken over" if body.action is Action.ADD else "given back"
        return Done(message=f"{len(set(body.userNames))} account(s) {done}")

    @about.post("/api/v1/agent/order", roles=OPERATORS)
    async def order(body: model.GiveOrder, caller: Caller) -> model.OrdersGiven:
        """Tell agents to synchronize, to discover or to rotate passwords now, and wait for what becomes of it."""
        given = await agents.orders.give(
            body.domainId, body.instanceId, body.kind, body.userNames, wait_s=body.waitSeconds
        )
        done = sum(each.outcome == "done" for each in given)
        return model.OrdersGiven(
            message=f"{done} of {len(given)} order(s) done", orders=[order_entry(each) for each in given]
        )

    @about.post("/api/v1/agent/setSettings", roles=OPERATORS)
    async def set_settings(body: model.SetSettings, caller: Caller) -> Done:
        """Say how the agents of a domain behave, or that of one machine."""
        await agents.settings.set(body.domainId, body.instanceId, body.said())
        return Done(message="settings kept")

    @about.post("/api/v1/agent/rotateStateKey", roles=ADMINS)
    async def rotate_state_key(body: model.RotateStateKey, caller: Caller) -> Done:
        """Sign the states of a domain by another key. Its agents learn the new one from a state that the old one has
        signed; who has not by the next rotation, registers again."""
        await agents.rotate_state_key(body.domainId)
        return Done(message="states are signed by a new key")


async def status_of(agents: Agents, domain_id: int, instance_id: int) -> model.AgentStatus:
    """How it stands with a machine. NotFound."""
    found = await agents.situation(domain_id, instance_id)
    return model.AgentStatus(
        agent=agent_entry(found.agent, found.seen_at),
        waits=found.waits,
        users=list(found.users),
        unfit=list(found.unfit),
        lastDiscovery=_moment(found.agent.discovered_at),
        lastPrivilegeStatus=_moment(found.agent.privileges_at),
        privilegeStatus=_privileges(found),
        report=None if found.report is None else report_entry(found.report),
        orders=[order_entry(each) for each in found.orders],
    )


def _privileges(found: Situation) -> model.PrivilegeEntry | None:
    told = json.loads(found.privileges)
    return model.PrivilegeEntry(time=_moment(found.agent.privileges_at), **told) if told else None


def agent_entry(agent: Agent, seen_at: int) -> model.AgentEntry:
    """An agent as the interface shows it."""
    return model.AgentEntry(
        instanceId=agent.instance_id,
        instanceName=agent.name,
        hostName=agent.host_name,
        status=agent.status,
        lastSeen=iso(seen_at),
        enrolled=iso(agent.enrolled_at),
        agentVersion=agent.agent_version,
        wantedVersion=agent.version,
        appliedVersion=agent.applied_version,
        upToDate=0 < agent.version == agent.applied_version,
    )


def order_entry(order: Order) -> model.OrderEntry:
    """An order as the interface shows it."""
    return model.OrderEntry(
        orderId=order.id,
        instanceId=order.instance_id,
        kind=order.kind,
        userNames=list(order.accounts),
        ordered=iso(order.ordered_at),
        outcome=order.outcome,
        ended=_moment(order.ended_at),
        error=order.error,
    )


def drift_entry(drift: StoredDrift) -> model.DriftEntry:
    """What someone else changed, as the interface shows it."""
    return model.DriftEntry(
        driftId=drift.id,
        instanceId=drift.instance_id,
        kind=drift.kind,
        name=drift.subject,
        detail=drift.detail,
        putBack=bool(drift.put_back),
        first=iso(drift.first_at),
        last=iso(drift.last_at),
        ended=_moment(drift.ended_at),
    )


def report_entry(report: StoredReport) -> model.ReportEntry:
    """A report as the interface shows it."""
    return model.ReportEntry(
        reportId=report.number,
        time=iso(report.at),
        version=report.version,
        outcome=report.outcome,
        told=json.loads(report.told),
    )


def _moment(at: int | None) -> str:
    return "" if at is None else iso(at)
