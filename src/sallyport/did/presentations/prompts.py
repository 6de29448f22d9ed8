"""Presentation requests as the second factor of logins: what `mfa/wallet.py` asks for."""

import trio

from sallyport.base.clock import Clock, now_us
from sallyport.did.held import repo as held
from sallyport.did.presentations import repo
from sallyport.did.presentations.asking import new_request
from sallyport.did.presentations.model import Status
from sallyport.did.presentations.waker import Waker
from sallyport.store.model import Store, Tx


class LoginPrompts:
    """Asks the wallets of those who log in. Satisfies `mfa.host.WalletPrompts`."""

    def __init__(self, store: Store, waker: Waker, clock: Clock = now_us) -> None:
        self._store = store
        self._waker = waker
        self._clock = clock

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Whether a user of the domain holds a valid credential of that issuer. schema_id 0: of any schema."""
        at = self._clock()
        holder = await self._store.read(lambda tx: held.holder_of_user(tx, domain_id, user, issuer_did, schema_id, at))
        return holder is not None

    async def open(
        self,
        domain_id: int,
        user: str,
        issuer_did: str,
        schema_id: int,
        *,
        challenge_id: str,
        purpose: str,
        expires_at: int,
    ) -> int | None:
        """Ask the user's wallet for that credential; the request's id, which is the same for the same challenge_id.
        None: the user holds none."""
        at = self._clock()

        def work(tx: Tx) -> int | None:
            holder = held.holder_of_user(tx, domain_id, user, issuer_did, schema_id, at)
            if holder is None:
                return None
            credential = held.by_name(tx, domain_id, holder.credential)
            new = new_request(
                domain_id,
                issuer_did,
                schema_id,
                holder,
                purpose=purpose,
                expires_at=expires_at,
                challenge_id=challenge_id,
                schema_url=credential.schema_url if schema_id and credential is not None else "",
            )
            return repo.add(tx, new, at)

        return await self._store.write(work)

    async def answer(self, request_id: int, *, within_s: float) -> bool | None:
        """Whether the request was met (True), or declined, withdrawn or out of time (False); None: it is still open
        after that time."""
        with self._waker.waiting(request_id) as answered:
            standing = await self._standing(request_id)
            if standing is None:
                with trio.move_on_after(within_s):
                    await answered.wait()
                standing = await self._standing(request_id)
        return standing

    async def _standing(self, request_id: int) -> bool | None:
        request = await self._store.read(lambda tx: repo.get(tx, request_id))
        if request is not None and request.is_open(self._clock()):
            return None
        return request is not None and request.status == Status.ACCEPTED

    async def withdraw(self, request_id: int) -> None:
        """Nobody waits for the answer any more."""
        at = self._clock()
        await self._store.write(lambda tx: repo.close(tx, request_id, Status.WITHDRAWN, at))
