"""The HTTP operations of revocation: /ad/ListRevocationLists and /ad/FetchRevocationLists."""

from pydantic import Field

from sallyport.areas.authorities.bodies import AuthorityId
from sallyport.areas.authorities.revocation.composition import RevocationService
from sallyport.areas.authorities.revocation.listing import RevocationListEntry
from sallyport.areas.authorities.service import Authorities
from sallyport.base.answer import answers
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.text import counted
from sallyport.web.bodies import Paged, Plain, Scoped, TotalCount, Whole
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


class ListRevocationLists(Scoped, Paged):
    """Request body of the operation `ListRevocationLists`."""

    authorityId: Whole = Field(default=0, description="Id of the authority. 0 selects all authorities of the tenant.")


class FetchRevocationLists(Scoped):
    """Request body of the operation `FetchRevocationLists`."""

    authorityId: AuthorityId


@answer_of(RevocationListEntry)
class RevocationListAnswer(Model):
    """A revocation list."""


class RevocationListPage(Model):
    """Response body of the operation `ListRevocationLists`."""

    lists: list[RevocationListAnswer] = Field(description="Revocation lists of the page, by authority and address.")
    totalCount: TotalCount


def operations(authorities: Authorities, revocation: RevocationService, gate: Gate) -> Operations:
    """Declare the operations."""
    lists = Operations("Authorities", gate)

    @lists.post("/ad/ListRevocationLists", roles=READERS)
    async def list_revocation_lists(body: ListRevocationLists, caller: Caller) -> Plain[RevocationListPage]:
        """List the certificate revocation lists of authorities, with their ages and the results of the last fetches.

        A list is here if its address is in the settings of the authority, or if a certificate of a login has named it.
        """
        tenant_id, page = caller.tenant_id, body.page()
        chosen = (
            [authorities.present(tenant_id, body.authorityId)] if body.authorityId else authorities.of_tenant(tenant_id)
        )
        found = [entry for each in chosen for entry in revocation.entries(each)]
        shown = answers(found[page.offset : page.offset + page.size])
        return Plain({"lists": shown, "totalCount": len(found)})

    @lists.post("/ad/FetchRevocationLists", roles=OPERATORS)
    async def fetch_revocation_lists(body: FetchRevocationLists, caller: Caller) -> Done:
        """Fetch the revocation lists of an authority at once, for example after a revocation. A list that was fetched
        less than 30 seconds ago is fetched when they have passed. The call does not wait for the result;
        ListRevocationLists shows it."""
        authority = authorities.present(caller.tenant_id, body.authorityId)
        count = len(revocation.entries(authority))
        await revocation.lists.look_again(authority.id)
        return Done(message=f"fetching {counted(count, 'revocation list')} of authority {authority.name}")

    return lists
