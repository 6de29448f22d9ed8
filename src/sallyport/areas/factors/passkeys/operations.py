"""HTTP operations of passkeys: /ad/...Passkey(s). People register passkeys on a page, and not by an operation, because
a passkey is made by the browser of its owner."""

from sallyport.areas.factors.passkeys.bodies import ListPasskeys, PasskeyList, RemovePasskey
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.passkeys.service import Passkeys
from sallyport.areas.users.administrators import Administrators
from sallyport.base.answer import answers
from sallyport.base.model import Done
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: Passkeys, administrators: Administrators, gate: Gate) -> Operations:
    """Return the operations of passkeys."""
    passkeys = Operations("Factors", gate)

    @passkeys.post("/ad/ListPasskeys", roles=READERS)
    async def list_passkeys(body: ListPasskeys, caller: Caller) -> Plain[PasskeyList]:
        """List the passkeys of a domain's users, ordered by user.

        A passkey can be used only with the host for which it was made. A change of public_url makes the former passkeys
        unusable.
        """
        page = body.page()
        found, total = await service.page(body.domainId, body.userName, page.offset, page.size)
        host = service.host
        return Plain({"host": host, "passkeys": answers(found, host=host), "totalCount": total})

    @passkeys.post("/ad/RemovePasskey", roles=OPERATORS)
    async def remove_passkey(body: RemovePasskey, caller: Caller) -> Done:
        """Remove a passkey of a user, such as that of a lost phone. The next login with it is refused. Only the role
        admin removes a passkey of an administrator."""
        person = Person(body.domainId, body.userName)
        await administrators.check(body.domainId, body.userName, caller)
        removed = await service.remove(person, body.passkeyId)
        return Done(message=f"passkey {removed.name} of {removed.user_name} removed")

    return passkeys
