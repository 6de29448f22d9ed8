"""End the sessions of users whose certificate was revoked.

Each login with a certificate of an authority is noted, at most once a day for each user and certificate. When an
authority has a new list, the leader looks which of these certificates are on it. A responder is asked again about the
certificates of recent logins when its answer has ended. The sessions of a user whose certificate is revoked end as
those of a user who loses the access in another way (`dynamic.revocations`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import structlog
import trio
from cryptography import x509

from sallyport.areas.authorities.revocation import certified_repo as repo
from sallyport.areas.authorities.revocation import revoked_repo
from sallyport.areas.authorities.revocation.certified_repo import CertifiedUser, StoredUser
from sallyport.areas.authorities.revocation.lists import key_hash
from sallyport.areas.authorities.revocation.ocsp import OcspQuestion
from sallyport.areas.authorities.revocation.responders import Responders
from sallyport.areas.authorities.revocation.service import RevocationChecks
from sallyport.areas.authorities.revocation.sources import RevocationLists
from sallyport.areas.authorities.revocation.state import RevocationRules, RevocationState, RevocationStatus
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import LeaseLost, SallyportError
from sallyport.base.fair import FairLimiter, in_parts
from sallyport.store.model import Store, Tx

Revoke = Callable[[Tx, int, Sequence[str], str], None]
"""A function that stores that users of a domain have lost their access: (tx, domain_id, names, reason)."""

_NotedKey = tuple[int, str, int, str]
"""An authority's id, a serial number in hex, a domain's id, and a user."""

REASON: Final = "the client certificate was revoked"
MAX_NOTED: Final = 20_000
MAX_WAITING: Final = 10_000
"""Maximum number of users that wait for the store. If there are more, the oldest are dropped, and noted later."""
PAGE: Final = 500
ASK_S: Final = 60.0
"""How often the leader looks for certificates about which responders are asked again."""
ASKED: Final = 200
"""Maximum number of these certificates of a tenant at once."""
MAX_STORED: Final = 100_000
"""Maximum number of stored users of a tenant. If there are more, those of the oldest logins are deleted."""
_AT_ONCE: Final = 8
_DAY_US: Final = 86_400 * SECOND
_ASKED_FOR_US: Final = 7 * _DAY_US
_KEPT_US: Final = 90 * _DAY_US
_AGAIN_US: Final = 300 * SECOND

log = structlog.get_logger()


class CertifiedUsers:
    """The users of logins with certificates. rules: a function that returns the rules of each authority, by its id."""

    def __init__(
        self,
        store: Store,
        leader_store: Store,
        checks: RevocationChecks,
        lists: RevocationLists,
        responders: Responders,
        clock: Clock,
        rules: Callable[[], Mapping[int, RevocationRules]],
        revoke: Revoke,
    ) -> None:
        self._store, self._leader_store = store, leader_store
        self._checks, self._lists, self._responders = checks, lists, responders
        self._clock, self._rules, self._revoke = clock, rules, revoke
        self._noted = BoundedMap[_NotedKey, tuple[int, int]](MAX_NOTED)
        self._waiting = deque[CertifiedUser](maxlen=MAX_WAITING)
        self._wake = trio.Event()

    def note(
        self,
        chain: Sequence[x509.Certificate],
        rules: RevocationRules,
        domain_id: int,
        user: str,
        state: RevocationState,
    ) -> None:
        """Note an accepted login. user: the name without its realm. state: the state of the certificate."""
        certificate, now = chain[0], self._clock()
        version = self._lists.version(rules.authority_id)
        key = (rules.authority_id, f"{certificate.serial_number:x}", domain_id, user)
        noted = self._noted.get(key)
        if noted is not None and now < noted[0] + _DAY_US and noted[1] == version:
            return
        self._noted.put(key, (now, version), rules.tenant_id)
        self._waiting.append(
            CertifiedUser(
                domain_id,
                rules.authority_id,
                key_hash(chain[1]).hex(),
                key[1],
                user,
                self._checks.responder(certificate, rules),
                min(state.until, now + _DAY_US),
                now,
                round(certificate.not_valid_after_utc.timestamp()) * SECOND,
            )
        )
        self._wake.set()

    def forget(self) -> None:
        """Note all users again, because the store was replaced."""
        self._noted.clear()

    async def run(self) -> None:
        """Store the noted users, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            taken = {(each.domain_id, each.authority_id, each.serial, each.user_name): each for each in self._waiting}
            self._waiting.clear()
            of_authority = dict[int, list[CertifiedUser]]()
            for each in taken.values():
                of_authority.setdefault(each.authority_id, []).append(each)
            for authority_id, users in of_authority.items():
                if authority_id in self._rules():  # it may have been removed meanwhile
                    await self._put(users)

    async def _put(self, users: Sequence[CertifiedUser]) -> None:
        """Store users of one authority. A user that cannot be stored does not affect those of other authorities."""
        try:
            await self._store.write(partial(repo.put, users=users))
        except SallyportError as error:
            self._forget(users)  # the next logins note the users again
            log.warning("certified_users_not_stored", error=str(error))
        except Exception:  # a name that the database refuses must not end the task that serves all tenants
            log.exception("certified_users_not_stored")

    def _forget(self, users: Sequence[CertifiedUser | StoredUser]) -> None:
        for each in users:
            self._noted.pop((each.authority_id, each.serial, each.domain_id, each.user_name))

    async def erase_authority(self, authority_id: int) -> None:
        """Delete the users and the revoked certificates of an authority that will be removed. Raises StoreError."""
        for delete in (repo.delete_of_authority, revoked_repo.delete_of_authority):
            while await self._store.write(partial(delete, authority_id=authority_id)):
                pass

    async def lead(self) -> None:
        """End the sessions of users whose certificate was revoked, until cancelled. One node does this for all.

        Lists and responders have a task each, so that a slow responder does not delay the look at a new list.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_lists)
            nursery.start_soon(self._follow_responders)

    async def _follow_lists(self) -> None:
        swept: dict[int, int] = {}
        while True:
            changed = self._lists.changed
            for authority_id in list(self._rules()):
                version = self._lists.version(authority_id)
                if version and swept.get(authority_id) != version:
                    async with _logged():
                        await self._sweep(authority_id)
                        swept[authority_id] = version
            with trio.move_on_after(ASK_S):
                await changed.wait()

    async def _follow_responders(self) -> None:
        while True:
            async with _logged():
                with trio.move_on_after(ASK_S):  # the rest is asked about next
                    await self._ask_again()
                await self._delete_old()
            await trio.sleep(ASK_S)

    async def _sweep(self, authority_id: int) -> None:
        """End the sessions of users whose certificate is on a list of an authority."""
        after = 0
        while page := await self._store.read(
            partial(repo.of_authority, authority_id=authority_id, after=after, limit=PAGE)
        ):
            after = page[-1].id
            listed = await in_parts(self._is_listed, page)
            await self._end_sessions([each for each, is_listed in zip(page, listed, strict=True) if is_listed])

    def _is_listed(self, user: StoredUser) -> bool:
        rules = self._rules().get(user.authority_id)
        if rules is None:
            return False
        return self._checks.revocations(rules, bytes.fromhex(user.issuer_key))(int(user.serial, 16))

    async def _end_sessions(self, users: Sequence[StoredUser]) -> None:
        if not users:
            return

        def transaction(tx: Tx) -> None:
            for each in users:  # a computer's accounting may have the outer identity host/NAME
                self._revoke(tx, each.domain_id, [each.user_name, f"host/{each.user_name}"], REASON)
            repo.delete(tx, [each.id for each in users])

        await self._leader_store.write(transaction)
        self._forget(users)  # a certificate on hold can be used again, and then its users are noted again
        for each in users:
            log.info("certificate_revoked", authority=each.authority_id, serial=each.serial, user=each.user_name)

    def _of_tenants(self) -> Mapping[int, Sequence[int]]:
        """Return the ids of the authorities of each tenant."""
        found = dict[int, list[int]]()
        for each in self._rules().values():
            found.setdefault(each.tenant_id, []).append(each.authority_id)
        return found

    async def _ask_again(self) -> None:
        """Ask responders about the certificates of recent logins whose answers have ended. Tenants take turns."""
        now, turns = self._clock(), FairLimiter[int](_AT_ONCE)

        async def ask(tenant_id: int, user: StoredUser) -> None:
            async with turns.slot(tenant_id):
                await self._ask_safely(user)

        async with trio.open_nursery() as nursery:
            for tenant_id, authorities in self._of_tenants().items():
                due = partial(repo.to_ask, authorities=authorities, now=now, since=now - _ASKED_FOR_US, limit=ASKED)
                for each in await self._store.read(due):
                    nursery.start_soon(ask, tenant_id, each)

    async def _ask_safely(self, user: StoredUser) -> None:
        """Ask about a user. An error concerns this user only, and is not raised."""
        try:
            try:
                await self._ask(user)
            except SallyportError:
                raise
            except Exception:
                log.exception("certified_user_not_asked", authority=user.authority_id, user=user.user_name)
                until = self._clock() + _DAY_US
                await self._leader_store.write(partial(repo.asked, row_id=user.id, until=until))
        except LeaseLost:
            pass
        except SallyportError as error:
            log.warning("certified_user_not_asked", authority=user.authority_id, error=str(error))

    async def _ask(self, user: StoredUser) -> None:
        rules, key = self._rules().get(user.authority_id), bytes.fromhex(user.issuer_key)
        issuer = None if rules is None else await trio.to_thread.run_sync(_issuer_of, rules, key)
        until = self._clock() + _DAY_US
        if rules is not None and issuer is not None:
            serial = int(user.serial, 16)
            is_revoked = self._checks.revocations(rules, key)
            question = OcspQuestion(serial, issuer, issuer.subject.public_bytes(), is_revoked=is_revoked)
            answer_key = (user.authority_id, key, serial)
            state = await self._responders.ask(rules, user.responder, answer_key, question)
            if state.status is RevocationStatus.REVOKED:
                await self._end_sessions([user])
                return
            until = max(state.until, self._clock() + _AGAIN_US)
        await self._leader_store.write(partial(repo.asked, row_id=user.id, until=until))

    async def _delete_old(self) -> None:
        now = self._clock()
        while await self._leader_store.write(partial(repo.delete_old, now=now, since=now - _KEPT_US)):
            pass
        for authorities in self._of_tenants().values():
            while await self._store.read(partial(repo.count_of, authorities=authorities)) > MAX_STORED:
                await self._leader_store.write(partial(repo.delete_oldest, authorities=authorities, most=MAX_STORED))


@asynccontextmanager
async def _logged() -> AsyncIterator[None]:
    """Log an error of the block, so that it ends no task of all tenants."""
    try:
        yield
    except LeaseLost:
        pass
    except SallyportError as error:
        log.warning("certified_users_not_read", error=str(error))
    except Exception:
        log.exception("certified_users_not_read")


def _issuer_of(rules: RevocationRules, key: bytes) -> x509.Certificate | None:
    """Return the certificate of an authority with a key. Return None if only the clients' chains have it."""
    found = x509.load_pem_x509_certificates(rules.bundle.encode())
    return next((each for each in found if key_hash(each) == key), None)
