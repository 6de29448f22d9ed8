"""The HTTP operations under /api/v1/agent/ for agents and for admins who manage agents, and the registration of
machines."""

import json
from base64 import b64decode

from sallyport.agentwire.fields import PRIVILEGES, REPORT, ROTATION, STATE
from sallyport.areas.agents import bodies
from sallyport.areas.agents.agent_bodies import (
    AddMachine,
    MachineAdded,
    PollBody,
    PrivilegesBody,
    ReportBody,
    RotationBody,
)
from sallyport.areas.agents.reports_repo import StoredReport
from sallyport.areas.agents.service import Agents, Situation
from sallyport.areas.users.membership import Action
from sallyport.base.answer import answer, answers
from sallyport.base.clock import iso
from sallyport.base.errors import Refused
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, AGENTS, ENROLMENTS, OPERATORS, READERS, Caller, Gate, not_allowed


def operations(agents: Agents, gate: Gate) -> Operations:
    """Return the operations with which admins manage agents, and the operations that agents call."""
    declared = Operations("Endpoint agents", gate)
    _declare_reading(declared, agents)
    _declare_findings(declared, agents)
    _declare_changing(declared, agents)
    _declare_requests(declared, agents)
    _declare_reports(declared, agents)
    return declared


def _declare_reading(declared: Operations, agents: Agents) -> None:
    @declared.post("/api/v1/agent/listAgents", roles=READERS)
    async def list_agents(body: bodies.ListAgents, caller: Caller) -> Plain[bodies.AgentList]:
        """List the agents of a domain, ordered by instance."""
        page = body.page()
        found, total = await agents.page(ListQuery(body.domainId, page.offset, page.size), body.status)
        return Plain({"agents": answers(found, seen_at=agents.presence.seen_at), "totalCount": total})

    @declared.post("/api/v1/agent/agentStatus", roles=READERS)
    async def agent_status(body: bodies.OneAgent, caller: Caller) -> Plain[bodies.AgentStatus]:
        """Return the status of a machine: its accounts, its agent's last report, and its orders."""
        return Plain(status_entry(await agents.situation(body.domainId, body.instanceId)))

    @declared.post("/api/v1/agent/getSettings", roles=READERS)
    async def get_settings(body: bodies.GetSettings, caller: Caller) -> bodies.SettingsShown:
        """Return the settings of a domain's agents, or of one machine's agent."""
        return bodies.SettingsShown.of(await agents.settings(body.domainId, body.instanceId))

    @declared.post("/api/v1/agent/getPassword", roles=READERS)
    async def get_password(body: bodies.GetPassword, caller: Caller) -> Plain[bodies.PasswordList]:
        """Return the passwords that may be valid for an account on a machine. An auditor gets ******** instead of each
        password. The audit trail records each call."""
        reveal = caller.role in OPERATORS
        known = await agents.rotations.show(body.domainId, body.instanceId, body.userName, reveal=reveal)
        return Plain(
            {"passwords": [{"password": each.password, "state": each.state, "since": iso(each.at)} for each in known]}
        )


def _declare_findings(declared: Operations, agents: Agents) -> None:
    @declared.post("/api/v1/agent/listReports", roles=READERS)
    async def list_reports(body: bodies.ListReports, caller: Caller) -> Plain[bodies.ReportList]:
        """List the reports of an agent, the newest first. The service keeps the last 20 reports of each agent."""
        await agents.agent(body.domainId, body.instanceId)
        page = body.page()
        found, total = await agents.reports.newest(body.instanceId, page.size, page.offset)
        return Plain({"reports": [report_entry(each) for each in found], "totalCount": total})

    @declared.post("/api/v1/agent/listDrift", roles=READERS)
    async def list_drift(body: bodies.ListDrift, caller: Caller) -> Plain[bodies.DriftList]:
        """List the drift on a domain's machines, or on one machine, the newest first. Drift is a change that was made
        on a machine, but not by the machine's agent."""
        page = body.page()
        found, total = await agents.reports.drift(
            body.domainId, body.instanceId, lasting=body.lasting, limit=page.size, offset=page.offset
        )
        return Plain({"drift": answers(found), "totalCount": total})

    @declared.post("/api/v1/agent/listDiscovered", roles=READERS)
    async def list_discovered(body: bodies.ListDiscovered, caller: Caller) -> Plain[bodies.DiscoveredList]:
        """List the accounts or the groups that an agent has discovered on its machine, ordered by name."""
        await agents.agent(body.domainId, body.instanceId)
        page = body.page()
        found, total = await agents.reports.discovered(body.instanceId, body.kind, page.size, page.offset)
        entries = [
            {"name": each.name, "userId": each.user_id or 0, "found": iso(each.at), "told": each.fields}
            for each in found
        ]
        return Plain({"discovered": entries, "totalCount": total})


def _declare_changing(declared: Operations, agents: Agents) -> None:
    @declared.post("/api/v1/agent/takeOver", roles=OPERATORS)
    async def take_over(body: bodies.TakeOver, caller: Caller) -> Done:
        """Let an agent manage accounts that the agent has discovered, or end this management. If one account fails, no
        account is changed."""
        await agents.take_over(body.domainId, body.instanceId, body.userNames, body.action)
        done = "taken over" if body.action is Action.ADD else "given back"
        return Done(message=f"{counted(len(set(body.userNames)), 'account')} {done}")

    @declared.post("/api/v1/agent/order", roles=OPERATORS)
    async def order(body: bodies.GiveOrder, caller: Caller) -> Plain[bodies.OrdersGiven]:
        """Order agents to synchronize, to discover accounts or to rotate passwords now, and wait for the outcome."""
        given = await agents.orders.give(
            body.domainId, body.instanceId, body.kind, body.userNames, wait_s=body.waitSeconds
        )
        done = sum(each.outcome == "done" for each in given)
        message, orders = f"{done} of {counted(len(given), 'order')} done", answers(given)
        return Plain({"code": 200, "status": "Success", "message": message, "orders": orders})

    @declared.post("/api/v1/agent/setSettings", roles=OPERATORS)
    async def set_settings(body: bodies.SetSettings, caller: Caller) -> Done:
        """Change the settings of a domain's agents, or of one machine's agent."""
        await agents.change_settings(body.domainId, body.instanceId, body.given())
        return Done(message="settings stored")

    @declared.post("/api/v1/agent/rotateStateKey", roles=ADMINS)
    async def rotate_state_key(body: bodies.RotateStateKey, caller: Caller) -> Done:
        """Replace the key that signs a domain's states. Agents receive the new key in a state that is signed with the
        old key. Suppose that an agent does not receive the new key before the key is replaced again. That agent must
        register again."""
        await agents.rotate_state_key(body.domainId)
        return Done(message="states are signed by a new key")


def _declare_requests(agent: Operations, agents: Agents) -> None:
    @agent.post("/api/v1/machine/add-machine", "/api/v1/instances/add-instance", roles=OPERATORS | ENROLMENTS | AGENTS)
    async def add_machine(body: AddMachine, caller: Caller) -> MachineAdded:
        """Register a machine.

        A request with an access token needs a domainId, and always adds a new instance. If the name is taken, the
        request fails with a conflict. A request may instead have an API key, either as the token or in the field
        machineKey. A known machine with an API key gets its existing instance. If the request has no name, an address
        of the machine becomes the name of the instance.
        """
        return MachineAdded.of(await agents.machines.register(caller, body.domainId, body.machine))

    @agent.post(STATE, roles=AGENTS)
    async def desired_state(body: PollBody, caller: Caller) -> dict[str, object]:
        """Return the signed desired state of the agent's machine as soon as its version differs from `version`. If the
        version does not change within `waitS` seconds, return `unchanged`."""
        domain_id, instance_id = _own(caller)
        await agents.presence.seen(instance_id)
        poll = body.message
        answer = await agents.states.poll(
            caller.tenant_id, domain_id, instance_id, poll.version, poll.wait_s, key=b64decode(poll.key)
        )
        agents.metrics.messages.cell("poll", "ok").count += 1
        return answer


def _declare_reports(agent: Operations, agents: Agents) -> None:
    @agent.post(REPORT, roles=AGENTS)
    async def report(body: ReportBody, caller: Caller) -> Done:
        """Store the report of an agent: its actions and findings. If the agent sends a report twice, the second one
        changes nothing."""
        _, instance_id = _own(caller)
        await agents.presence.seen(instance_id)
        is_new = await agents.reports.take(instance_id, body.message)
        agents.metrics.messages.cell("report", "ok" if is_new else "repeated").count += 1
        return Done(message="report stored" if is_new else "report known")

    @agent.post(ROTATION, roles=AGENTS)
    async def rotation(body: RotationBody, caller: Caller) -> Done:
        """Store a step of a password rotation on the agent's machine."""
        _, instance_id = _own(caller)
        await agents.presence.seen(instance_id)
        try:
            await agents.rotations.take(instance_id, body.message)
        except Refused:
            agents.metrics.messages.cell("rotation", "refused").count += 1
            raise
        agents.metrics.messages.cell("rotation", "ok").count += 1
        return Done(message=f"{body.message.phase} stored")

    @agent.post(PRIVILEGES, roles=AGENTS)
    async def privilege_status(body: PrivilegesBody, caller: Caller) -> Done:
        """Store the list of accounts with root privileges on the agent's machine, and the drift of privileges."""
        _, instance_id = _own(caller)
        await agents.presence.seen(instance_id)
        await agents.reports.take_privileges(instance_id, body.message)
        agents.metrics.messages.cell("privileges", "ok").count += 1
        return Done(message="privilege status stored")


def _own(caller: Caller) -> tuple[int, int]:
    """Return the domain id and the instance id of the agent that calls. Raises Forbidden if the caller is not an
    agent."""
    if caller.domain_id is None or caller.instance_id is None:
        raise not_allowed(caller.role, AGENTS)
    return caller.domain_id, caller.instance_id


def status_entry(found: Situation) -> Row:
    """Return the status of a machine as the API shows it."""
    return {
        "agent": answer(found.agent, seen_at=lambda _instance_id, _stored: found.seen_at),
        "waits": found.waits,
        "users": list(found.users),
        "unfit": list(found.unfit),
        "lastDiscovery": _moment(found.agent.discovered_at),
        "lastPrivilegeStatus": _moment(found.agent.privileges_at),
        "privilegeStatus": _privilege_entry(found),
        "report": None if found.report is None else report_entry(found.report),
        "orders": list[JSON](answers(found.orders)),
    }


def _privilege_entry(found: Situation) -> JSON:
    status = json.loads(found.privileges)
    time = _moment(found.agent.privileges_at)
    return bodies.PrivilegeEntry(time=time, **status).model_dump() if status else None


def report_entry(report: StoredReport) -> Row:
    """Return a report as the API shows it."""
    return {
        "reportId": report.number,
        "time": iso(report.at),
        "version": report.version,
        "outcome": report.outcome,
        "told": json.loads(report.told),
    }


def _moment(at: int | None) -> str:
    return "" if at is None else iso(at)
