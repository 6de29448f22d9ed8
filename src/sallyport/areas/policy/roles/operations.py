"""HTTP operations of roles: /ad/...Role(s)."""

from collections.abc import Sequence

from sallyport.areas.policy.roles.bodies import ListRoles, RemoveRole, RoleEntry, RoleList, SetRole, ShowRole
from sallyport.areas.policy.roles.role import ReplySet, Role
from sallyport.areas.policy.roles.service import Roles
from sallyport.areas.policy.roles.templates import TEMPLATES
from sallyport.areas.policy.rules.bodies import replies
from sallyport.base.model import Done
from sallyport.base.text import fold, nearest
from sallyport.base.wire import JSON
from sallyport.radius.vendors import PRODUCTS
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: Roles, gate: Gate) -> Operations:
    """Declare the operations. Only an admin may change roles, because they decide about access."""
    roles = Operations("Login rules", gate)

    @roles.post("/ad/ListRoles", roles=READERS)
    async def list_roles(body: ListRoles, caller: Caller) -> Plain[RoleList]:
        """List the roles of a domain with their sets of reply attributes, ordered by name."""
        needle, page = fold(body.search), body.page()
        found = [role for key, role in service.of(body.domainId).items() if needle in key]
        uses = await service.uses(body.domainId)
        shown = found[page.offset : page.offset + page.size]
        entries = [_entry(service, role, uses.get(fold(role.name), ())) for role in shown]
        return Plain({"roles": entries, "totalCount": len(found)})

    @roles.post("/ad/ShowRole", roles=READERS)
    async def show_role(body: ShowRole, caller: Caller) -> Plain[RoleEntry]:
        """Return a role with its sets of reply attributes, and what uses it."""
        role = service.present(body.domainId, body.role)
        uses = await service.uses(body.domainId)
        return Plain(_entry(service, role, uses.get(fold(role.name), ())))

    @roles.post("/ad/SetRole", roles=ADMINS)
    async def set_role(body: SetRole, caller: Caller) -> Done:
        """Set the reply attributes of a role for a product, a tag or all others. A role that does not exist is added.

        The set replaces the previous set for the same product or tag as a whole. It applies from the next login on. A
        login rule gives the role with its field `role`. An empty set sends nothing.
        """
        own = TEMPLATES[body.product].replies(body.role) if body.template else ()
        await service.set(
            body.domainId,
            body.role,
            ReplySet(body.product, body.tag, body.vlan.strip(), (*own, *replies(body.replyAttributes))),
        )
        return Done(message=f"role {body.role} set for {body.tag or _named(body.product)}")

    @roles.post("/ad/RemoveRole", roles=ADMINS)
    async def remove_role(body: RemoveRole, caller: Caller) -> Done:
        """Remove a role, or its set for one product or tag. A role that is used, such as by a rule, is not removed."""
        is_whole = not any(body.key)
        await service.remove(body.domainId, body.role, None if is_whole else body.key)
        return Done(message="role removed" if is_whole else "set of the role removed")

    return roles


def _named(product: str) -> str:
    """Return a product for a message. A warning follows if no product has this name, because it may be misspelt."""
    if product in ("", *PRODUCTS):
        return product or "all other products"
    near = nearest(product, PRODUCTS)
    return f"{product}, which Sallyport never detects; a RADIUS client must have this product.{near}"


def _entry(service: Roles, role: Role, users: Sequence[str]) -> dict[str, JSON]:
    return {
        "role": role.name,
        "domainId": role.domain_id,
        "sets": [
            {
                **each.as_json(),
                "source": each.source.value,
                "attributes": list[JSON](service.translation.shown(each.attributes).splitlines()),
            }
            for each in role.sets
        ],
        "usedBy": list(users),
    }
