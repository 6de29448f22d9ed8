"""The entrance of authorities."""

from collections.abc import Sequence
from typing import Final

import trio

from sallyport.areas.authorities import operations as api
from sallyport.areas.authorities.configured import AuthorityKind
from sallyport.areas.authorities.revocation import operations as lists_api
from sallyport.areas.authorities.revocation.certified import Revoke
from sallyport.areas.authorities.revocation.composition import RevocationService
from sallyport.areas.authorities.service import Authorities
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate

LOADED_S: Final = 2.0
"""How long the start waits for the revocation lists, in seconds."""


class AuthoritiesArea(Area):
    """Authorities that sign the client certificates of a tenant's users."""

    erased_rows = (Rows("authority_domains", "authorities", "domain_id, authority_id"), Rows("certified_users"))

    def __init__(self, parts: Parts, domains: Domains, revoke: Revoke) -> None:
        self._domains = domains
        self.service = Authorities(parts.configuration, self._is_local, parts.clock)
        self.revocation = RevocationService(parts, lambda: self.service.table, revoke)
        self.service.before_deletion = self.revocation.certified.erase_authority
        self.configured = (AuthorityKind(self.service),)
        self.node_tasks = (self.revocation.lists.follow, self.revocation.certified.run)
        self.leader_tasks = (self.revocation.fetcher.lead, self.revocation.certified.lead)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of authorities."""
        return [api.operations(self.service, gate), lists_api.operations(self.service, self.revocation, gate)]

    def _is_local(self, domain_id: int) -> bool:
        domain = self._domains.table.by_id.get(domain_id)
        return domain is not None and domain.first_factor is FirstFactor.LOCAL

    async def prepare(self) -> None:
        """Load the revocation lists. Large ones are loaded after the start (`RevocationLists.follow`)."""
        with trio.move_on_after(LOADED_S):
            await self.revocation.lists.load()

    async def restored(self) -> None:
        """Load the revocation lists of the restored store."""
        with trio.move_on_after(LOADED_S):
            await self.revocation.lists.load()

    def forget_all(self) -> None:
        """Drop the revocation lists and the answers of responders."""
        self.revocation.forget()
