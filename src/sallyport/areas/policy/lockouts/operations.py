"""HTTP operations of lock-outs: /ad/ListLockouts and /ad/Unlock."""

from sallyport.areas.policy.lockouts.bodies import ListLockouts, LockoutList, Unlock, Unlocked
from sallyport.areas.policy.lockouts.failures import LockoutKind
from sallyport.areas.policy.lockouts.service import Lockouts
from sallyport.base.answer import answers
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: Lockouts, gate: Gate) -> Operations:
    """Declare the operations of lock-outs."""
    lockouts = Operations("Logins", gate)

    @lockouts.post("/ad/ListLockouts", roles=READERS)
    async def list_lockouts(body: ListLockouts, caller: Caller) -> Plain[LockoutList]:
        """List the users and stations of a domain that are locked out at present."""
        page = body.page()
        rows, total = await service.page(body.domainId, body.search, offset=page.offset, limit=page.size)
        return Plain({"lockouts": answers(rows), "totalCount": total})

    @lockouts.post("/ad/Unlock", roles=OPERATORS)
    async def unlock(body: Unlock, caller: Caller) -> Unlocked:
        """Unlock a user or a station, and reset its count of failures. With a user, the stations from which the user
        failed to log in are unlocked too."""
        found = await service.unlock(body.domainId, *body.named)
        return Unlocked(
            message="unlocked" if found else "the user or station was not locked out",
            stations=[row.name for row in found if row.kind == LockoutKind.STATION],
        )

    return lockouts
