"""HTTP operations of authorities: /ad/...Authority, /ad/ListAuthorities."""

from typing import Final

from sallyport.areas.authorities.authority import Authority
from sallyport.areas.authorities.bodies import (
    AddAuthority,
    AuthorityAdded,
    AuthorityDetail,
    AuthorityList,
    AuthorityUpdated,
    ListAuthorities,
    OneAuthority,
    UpdateAuthority,
)
from sallyport.areas.authorities.service import Authorities
from sallyport.base.answer import answer, answers, field_names
from sallyport.base.model import Done, given
from sallyport.base.text import fold
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate

_FIELDS: Final = {name: field for name, field in field_names(Authority).items() if name != "certificates"}


def operations(service: Authorities, gate: Gate) -> Operations:
    """Declare the operations. Only an admin may change authorities, because they decide about access."""
    authorities = Operations("Authorities", gate)

    @authorities.post("/ad/AddAuthority", roles=ADMINS)
    async def add_authority(body: AddAuthority, caller: Caller) -> AuthorityAdded:
        """Trust the client certificates of an authority for the users of some domains.

        A domain with authorities of its own does not trust those of the installation's setting `eap_ca`. The change
        applies to the next login. 409: the name is taken, another authority of a domain has the same key, or there are
        too many authorities.
        """
        added = await service.add(caller.tenant_id, body.name, body.certificates, values_of(body))
        warnings = service.warnings([added])[added.id]
        return AuthorityAdded(message=f"authority {added.name} added", authorityId=added.id, warnings=warnings)

    @authorities.post("/ad/ListAuthorities", roles=READERS)
    async def list_authorities(body: ListAuthorities, caller: Caller) -> Plain[AuthorityList]:
        """List the authorities of the tenant, or of one domain, ordered by name, without their certificates."""
        needle, page = fold(body.search), body.page()
        found = [
            each
            for each in service.of_tenant(caller.tenant_id)
            if needle in fold(each.name) and (not body.domainId or body.domainId in each.domain_ids)
        ]
        shown = found[page.offset : page.offset + page.size]
        return Plain({"authorities": answers(shown, warnings=service.warnings(shown)), "totalCount": len(found)})

    @authorities.post("/ad/GetAuthority", roles=READERS)
    async def get_authority(body: OneAuthority, caller: Caller) -> Plain[AuthorityDetail]:
        """Return an authority with its certificates."""
        found = service.present(caller.tenant_id, body.authorityId)
        return Plain(answer(found, detail=True, warnings=service.warnings([found])))

    @authorities.post("/ad/UpdateAuthority", roles=ADMINS)
    async def update_authority(body: UpdateAuthority, caller: Caller) -> AuthorityUpdated:
        """Change an authority. An array replaces the present one as a whole.

        The change applies to the next login. TLS sessions of earlier logins with certificates of the authority cannot
        be resumed any more; those clients log in with a full handshake.
        """
        changed = await service.update(caller.tenant_id, body.authorityId, body.certificates, values_of(body))
        warnings = service.warnings([changed])[changed.id]
        return AuthorityUpdated(message=f"authority {changed.name} updated", warnings=warnings)

    @authorities.post("/ad/DeleteAuthority", roles=ADMINS)
    async def delete_authority(body: OneAuthority, caller: Caller) -> Done:
        """Remove an authority. Its certificates are refused from the next login on, and TLS sessions of earlier logins
        cannot be resumed. If a domain has no other authority, those of the installation are trusted again."""
        removed = await service.delete(caller.tenant_id, body.authorityId)
        return Done(message=f"authority {removed.name} removed")

    return authorities


def values_of(body: AddAuthority | UpdateAuthority) -> dict[str, object]:
    """Return the values of a body that are not null, but not the certificates, by the fields of `Authority`."""
    values = given(body, _FIELDS)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
