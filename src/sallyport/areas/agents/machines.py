"""Registration of machines.

If a request has an API key and the machine is known, the answer is the existing instance. A request with an access
token always adds a new instance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sallyport.areas.agents import repo, signers
from sallyport.areas.users.instances import repo as instances_repo
from sallyport.areas.users.instances.instance import ACTIVE, Instance
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.membership import INSTANCES, NOT_FOUND
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import MISSING, FieldError, Invalid, NotFound
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault
from sallyport.web.scope import AGENTS, ENROLMENTS, OPERATORS, Caller, Role, not_allowed

SUFFIX: Final = 8
"""Number of characters of the machine id that are appended to the name of an instance if another instance has the
name."""


class Keys(Protocol):
    """The interface to the API keys."""

    def spend(self, tx: Tx, caller: Caller, instance_id: int) -> None:
        """Record that a machine used an enrolment key to register as an instance. Raises Unauthenticated, Forbidden."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The values that a machine sends when it registers. id: a stable id that is independent of the machine's name, or
    empty. name: the name of the instance. If the name is empty, an address becomes the name."""

    id: str
    name: str
    os_id: int
    public_ip: str
    private_ip: str
    host_name: str = ""
    agent_version: str = ""

    @property
    def names(self) -> Iterator[str]:
        """The possible names of the instance, the preferred name first."""
        if self.name:
            yield self.name
            return
        named = [each for each in (self.private_ip, self.public_ip, self.host_name) if each]
        yield from named
        if self.id:
            yield from (f"{each} {self.id[:SUFFIX]}" for each in named)

    def onto(self, old: Instance) -> Instance:
        """Return the fields of an instance: the values of this machine, or the value in `old` where the machine's value
        is empty or 0."""
        return replace(
            old,
            os_id=self.os_id or old.os_id,
            public_ip=self.public_ip or old.public_ip,
            private_ip=self.private_ip or old.private_ip,
            host_name=self.host_name or old.host_name,
        )


@dataclass(frozen=True, slots=True)
class Registered:
    """The result of a registration. state_key: the public key with which the agent verifies desired states (32 octets).
    It is empty if the caller used an access token."""

    instance_id: int
    domain_id: int
    state_key: bytes
    is_new: bool


class Machines:
    """The service that registers machines."""

    def __init__(self, store: Store, vault: Vault, instances: Instances, keys: Keys, clock: Clock = now_us) -> None:
        self._store = store
        self._vault = vault
        self._instances = instances
        self._keys = keys
        self._clock = clock

    async def register(self, caller: Caller, domain_id: int | None, machine: Machine) -> Registered:
        """Return the instance of a machine. Add an instance if the machine is new.

        caller: the authenticated caller. An operator must specify the domain, and always adds a new instance. With an
        enrolment key or an agent's key, a known machine gets its existing instance.

        Raises Invalid if the machine has neither a name nor an address, or if the domain is missing. Raises Conflict if
        the name is taken. Raises Unauthenticated or Forbidden if the key is not accepted. Raises NotFound if the
        instance of the key was deleted.
        """
        domain_id = domain_id if caller.domain_id is None else caller.domain_id
        if domain_id is None:
            raise Invalid("missing domainId", (FieldError("domainId", MISSING),))

        def transaction(tx: Tx) -> Registered:
            return self._register(tx, caller, domain_id, machine)

        return await self._store.write(transaction)

    def _register(self, tx: Tx, caller: Caller, domain_id: int, machine: Machine) -> Registered:
        names = list(machine.names)
        if caller.role in OPERATORS:
            return Registered(self._add(tx, domain_id, machine, names[:1]), domain_id, b"", is_new=True)
        found = self._find(tx, domain_id, caller.instance_id, machine)
        if found is None:
            instance_id = self._add(tx, domain_id, machine, names)
        else:
            instance_id = found.id
            if caller.role is not Role.ENROLMENT or found.status != ACTIVE:  # an active agent reports its values itself
                self._instances.update_in(tx, found, machine.onto(found))
        if caller.role is Role.ENROLMENT:
            self._keys.spend(tx, caller, instance_id)
        elif caller.role is not Role.AGENT:
            raise not_allowed(caller.role, OPERATORS | ENROLMENTS | AGENTS)
        machine_id = self._machine_id(tx, caller, domain_id, instance_id, machine)
        repo.add(tx, domain_id, instance_id, machine_id, machine.agent_version, self._clock())
        return Registered(instance_id, domain_id, signers.public_key(tx, self._vault, domain_id), found is None)

    def _add(self, tx: Tx, domain_id: int, machine: Machine, names: Sequence[str]) -> int:
        """Add an instance with the first name that is not taken. Raises Invalid if `names` is empty, and Conflict if
        all names are taken."""
        if not names:
            reason = "is missing: give a name for the instance, or an address of the machine"
            raise Invalid("missing instanceName", (FieldError("instanceName", reason),))
        name = next((each for each in names if instances_repo.named(tx, domain_id, each) is None), names[0])
        return self._instances.add_in(tx, domain_id, machine.onto(Instance(name)))

    def _machine_id(self, tx: Tx, caller: Caller, domain_id: int, instance_id: int, machine: Machine) -> str:
        """Return the machine id to store for an instance.

        If an agent registers with its own key, return the id that is stored already, so that the agent cannot change
        it. If another instance has the id that the machine reports, return an empty string.
        """
        known = repo.get(tx, instance_id)
        if known is not None and known.machine and caller.role is Role.AGENT:
            return known.machine
        other = repo.of_machine(tx, domain_id, machine.id) if machine.id else None
        return machine.id if other is None or other.instance_id == instance_id else ""

    def _find(self, tx: Tx, domain_id: int, instance_id: int | None, machine: Machine) -> Instance | None:
        """Return the instance of a known machine, or None if the machine is new.

        If the key belongs to an instance, return this instance. Otherwise search for the instance with the machine id.
        If there is none, search for an instance that has the name of the machine and that `_is_free` accepts. Raises
        NotFound if the instance of the key was deleted.
        """
        if instance_id is not None:
            found = instances_repo.get(tx, domain_id, instance_id)
            if found is None:
                raise NotFound(NOT_FOUND[INSTANCES])
            return found
        agent = repo.of_machine(tx, domain_id, machine.id) if machine.id else None
        if agent is not None:
            return instances_repo.get(tx, domain_id, agent.instance_id)
        for name in machine.names:
            found = instances_repo.named(tx, domain_id, name)
            if found is not None and _is_free(tx, found, machine):
                return found
            if found is None or machine.name:
                return None
        return None


def _is_free(tx: Tx, instance: Instance, machine: Machine) -> bool:
    """Return whether a machine may register as this instance. This is the case if the instance has no agent, or if its
    agent has no stored machine id, or if the stored machine id is the one that the machine reports."""
    agent = repo.get(tx, instance.id)
    return agent is None or not agent.machine or agent.machine == machine.id
