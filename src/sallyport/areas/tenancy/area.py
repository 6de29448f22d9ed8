"""The entrance of organizations, tenants, access tokens, and the API keys of agents."""

from collections.abc import Mapping, Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.tenancy import operations as api
from sallyport.areas.tenancy import repo
from sallyport.areas.tenancy.authentication import BURST, Authentication, guesses_of_all_nodes
from sallyport.areas.tenancy.keys import operations as keys_api
from sallyport.areas.tenancy.keys import repo as keys_repo
from sallyport.areas.tenancy.keys.key import Configure
from sallyport.areas.tenancy.keys.service import HasInstance, Keys
from sallyport.areas.tenancy.service import Tenancy
from sallyport.areas.tenancy.tenants import Tenants
from sallyport.shell.command import Command
from sallyport.store.foreign import KEYS, TOKENS
from sallyport.store.model import Tx
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class TenancyArea(Area):
    """Organizations, tenants, access tokens, and the API keys of agents.

    has_instance: whether a domain has an endpoint instance. agent_file: returns the configuration file of an agent.
    """

    def __init__(self, parts: Parts, *, has_instance: HasInstance, agent_file: Configure) -> None:
        self._clock = parts.clock
        self._agent_file = agent_file
        self.service = Tenancy(parts.store, parts.clock)
        self.tenants = Tenants(parts.store, self.service, parts.clock)
        guesses = guesses_of_all_nodes(parts.notices, "key", parts.clock, burst=BURST)
        self.keys = Keys(parts.store, guesses, parts.clock, has_instance=has_instance)
        self.authentication = Authentication(self.service, self.keys)
        self.foreign = {TOKENS: lambda _domain_id: self.service.forget(), KEYS: lambda _domain_id: self.keys.forget()}

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of API keys."""
        return [keys_api.operations(self.keys, self._agent_file, gate)]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of tenants and access tokens."""
        return api.local_operations(self.service, self.tenants, self._clock)

    def forget(self) -> None:
        """Empty the caches of tokens and keys."""
        self.service.forget()
        self.keys.forget()

    def revoke(self, tx: Tx, at: int) -> None:
        """Revoke all access tokens, and the keys with which agents enrol."""
        repo.revoke_all(tx, at=at)
        keys_repo.revoke_enrolments(tx, at)
