"""The HTTP operations of agents: registration, and /api/v1/agent/desiredState, report, rotation, privilegeStatus."""

from base64 import b64decode

from sallyport.base.agentwire.fields import PRIVILEGES, REPORT, ROTATION, STATE
from sallyport.base.errors import Forbidden, Refused
from sallyport.endpoints.agents.agent_model import (
    AddMachine,
    MachineAdded,
    PollBody,
    PrivilegesBody,
    ReportBody,
    RotationBody,
)
from sallyport.endpoints.agents.service import Agents
from sallyport.web.operation import Done, Operations
from sallyport.web.scope import AGENTS, ENROLMENTS, OPERATORS, Caller, Gate


def operations(agents: Agents, gate: Gate) -> Operations:
    """The operations of this slice that agents ask for."""
    agent = Operations("Endpoint agents", gate)
    _declare_asking(agent, agents)
    _declare_telling(agent, agents)
    return agent


def _declare_asking(agent: Operations, agents: Agents) -> None:

    @agent.post("/api/v1/machine/add-machine", "/api/v1/instances/add-instance", roles=OPERATORS | ENROLMENTS | AGENTS)
    async def add_machine(body: AddMachine, caller: Caller) -> MachineAdded:
        """Register a machine.

        An access token with a domainId adds a new instance; a name that is taken is a conflict. An API key, as token or
        as machineKey, finds the instance of its machine again. Without a name the instance is named by its address.
        """
        return MachineAdded.of(await agents.machines.register(caller, body.domainId, body.machine))

    @agent.post(STATE, roles=AGENTS)
    async def desired_state(body: PollBody, caller: Caller) -> dict[str, object]:
        """The signed state of the agent's machine, as soon as it is another one than `version`; after `waitS` seconds
        `unchanged`."""
        domain_id, instance_id = _own(caller)
        await agents.presence.heard(instance_id)
        answer = await agents.states.poll(
            caller.tenant_id, domain_id, instance_id, body.said.version, body.said.wait_s, key=b64decode(body.said.key)
        )
        agents.metrics.messages.cell("poll", "ok").count += 1
        return answer


def _declare_telling(agent: Operations, agents: Agents) -> None:
    @agent.post(REPORT, roles=AGENTS)
    async def report(body: ReportBody, caller: Caller) -> Done:
        """What the agent did and found. The same report again does nothing."""
        _, instance_id = _own(caller)
        await agents.presence.heard(instance_id)
        is_new = await agents.reports.take(instance_id, body.said)
        agents.metrics.messages.cell("report", "ok" if is_new else "repeated").count += 1
        return Done(message="report kept" if is_new else "report known")

    @agent.post(ROTATION, roles=AGENTS)
    async def rotation(body: RotationBody, caller: Caller) -> Done:
        """A step of a password's rotation; when this answers, it is kept."""
        _, instance_id = _own(caller)
        await agents.presence.heard(instance_id)
        try:
            await agents.rotations.take(instance_id, body.said)
        except Refused:
            agents.metrics.messages.cell("rotation", "refused").count += 1
            raise
        agents.metrics.messages.cell("rotation", "ok").count += 1
        return Done(message=f"{body.said.phase} kept")

    @agent.post(PRIVILEGES, roles=AGENTS)
    async def privilege_status(body: PrivilegesBody, caller: Caller) -> Done:
        """Who may do what root may on the agent's machine, and what of it someone else has changed."""
        _, instance_id = _own(caller)
        await agents.presence.heard(instance_id)
        await agents.reports.take_privileges(instance_id, body.said)
        agents.metrics.messages.cell("privileges", "ok").count += 1
        return Done(message="privilege status kept")


def _own(caller: Caller) -> tuple[int, int]:
    """The domain and the instance that an agent's key is of."""
    if caller.domain_id is None or caller.instance_id is None:
        raise Forbidden("role not allowed")
    return caller.domain_id, caller.instance_id
