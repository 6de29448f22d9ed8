"""The entrance of organizations, tenants, access tokens, and the API keys of agents."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.tenancy import operations as api
from sallyport.areas.tenancy import repo
from sallyport.areas.tenancy.authentication import Authentication
from sallyport.areas.tenancy.guesses import BURST, guesses_of_all_nodes
from sallyport.areas.tenancy.keys import operations as keys_api
from sallyport.areas.tenancy.keys import repo as keys_repo
from sallyport.areas.tenancy.keys.key import Configure
from sallyport.areas.tenancy.keys.service import Keys
from sallyport.areas.tenancy.service import Tenancy
from sallyport.areas.tenancy.tenants import Tenants
from sallyport.shell.command import Command
from sallyport.store.erasure import DependentTable, Rows
from sallyport.store.foreign import KEYS, TOKENS
from sallyport.store.model import Tx
from sallyport.store.slices import Slice
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class Instances(Protocol):
    """The endpoint machines of all domains."""

    def in_domain(self, tx: Tx, domain_id: int, instance_id: int, /) -> bool:
        """Return whether a domain has a machine."""

    def before_deletion(self, delete: Slice[int]) -> None:
        """Register a function that deletes what another area has stored for a machine."""


class TenancyArea(Area):
    """Organizations, tenants, access tokens, and the API keys of agents.

    instances: the machines that keys of agents belong to. agent_file: returns the configuration file of an agent.
    """

    erased_rows = (
        Rows("api_keys", "API keys", parts=(DependentTable("api_key_machines", "key_id, machine", "key_id"),)),
    )

    def __init__(self, parts: Parts, instances: Instances, agent_file: Configure) -> None:
        self._clock = parts.clock
        self._organizations = parts.configuration.hold(repo.organizations, dict[int, int]())
        self._agent_file = agent_file
        self.service = Tenancy(parts.store, parts.clock)
        self.tenants = Tenants(parts.store, self.service, parts.clock)
        guesses = guesses_of_all_nodes(parts.notices, "key", parts.clock, burst=BURST)
        self.keys = Keys(parts.store, guesses, parts.clock, has_instance=instances.in_domain)
        instances.before_deletion(keys_repo.forget_instance)
        self.authentication = Authentication(self.service, self.keys)
        self.foreign = {TOKENS: lambda _domain_id: self.service.forget(), KEYS: lambda _domain_id: self.keys.forget()}

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of API keys."""
        return [keys_api.operations(self.keys, self._agent_file, gate)]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of tenants and access tokens."""
        return api.local_operations(self.service, self.tenants, self._clock)

    def organization_of(self, tenant_id: int | None) -> int | None:
        """Return the organization (orgId) of a tenant. tenant_id: the internal id."""
        return self._organizations.value.get(tenant_id or 0)

    def forget(self) -> None:
        """Empty the caches of tokens and keys."""
        self.service.forget()
        self.keys.forget()

    def revoke(self, tx: Tx, at: int) -> None:
        """Revoke all access tokens, and the keys with which agents enrol."""
        repo.revoke_all(tx, at=at)
        keys_repo.revoke_enrolments(tx, at)
