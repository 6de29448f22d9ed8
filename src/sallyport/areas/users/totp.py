"""One-time-password seeds of endpoint users and their enrolment.

A new seed is pending until the user types a correct code. The code proves that an authenticator app has the seed. Until
then, the old seed remains valid. The user types the code on the page behind the enrolment's link. Alternatively, the
admin who enrolled the user sends the code. The enrolment ends after a correct code, after five wrong codes, after an
hour, or when the next enrolment of the user begins.
"""

import re
import secrets
from base64 import b32encode
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hmac import compare_digest
from typing import TypeVar

import trio

from sallyport.areas.users import repo
from sallyport.areas.users.accounts.account import DIRECTORY, DIRECTORY_USER, UserChange
from sallyport.areas.users.repo import Pending, SealedSeed
from sallyport.areas.users.service import MAX_CACHED, EndpointUsers
from sallyport.areas.users.user import NO_USER, CodeCheck, Enrolment, UserKey, UserRef, name_key
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.secret import token_hash
from sallyport.base.text import plain_code
from sallyport.base.totp import matching_step, otpauth, qr_code, seconds_off, seed_octets
from sallyport.store import audit
from sallyport.store.audit import HIDDEN, record_in
from sallyport.store.model import Store, Tx, Work
from sallyport.store.vault import Vault

T = TypeVar("T")

SEED_OCTETS = 20
LINK_OCTETS = 32
LIFE_S = 3600
MAX_WRONG_CODES = 5

NOTHING_WAITS = "no enrolment of this user is pending: start one first"

_CODE = re.compile(r"[0-9]{6}", re.ASCII)

IssuerOf = Callable[[int], str]
"""A function that takes the id of an existing domain and returns its issuer. Authenticator apps display the issuer."""
FindPerson = Callable[[int, str], Awaitable[str | None]]
"""A function that returns the name by which logins of a domain know a person, or None if the person is unknown. It is
called for people without an endpoint user, such as those of a directory."""
LinkTo = Callable[[str], str]
"""A function that takes the secret part of an enrolment's link and returns the URL of the page."""


class OneTimeSeeds:
    """The seeds of all users. This class implements `mfa.host.Seeds`.

    The seed of a person from a directory or from the first factor also needs an endpoint user. `enrol` adds this user,
    without a password.

    `seed` keeps in memory, for each user, the sealed seed that it returned last. `spend` compares this seed with the
    seed in the store. If the two differ, the seed was replaced in the meantime, and `spend` stores nothing. life_s: the
    time in seconds until a pending seed and its link expire.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        users: EndpointUsers,
        issuer: IssuerOf,
        clock: Clock = now_us,
        *,
        max_given: int = MAX_CACHED,
        life_s: int = LIFE_S,
    ) -> None:
        self._store = store
        self._vault = vault
        self._users = users
        self._issuer = issuer
        self._clock = clock
        self._find_person: FindPerson | None = None
        self.life_us = life_s * SECOND
        self._given = BoundedMap[tuple[int, str], SealedSeed](max_given)
        self._one_image_at_a_time = trio.CapacityLimiter(1)

    def find_people_with(self, find: FindPerson) -> None:
        """Set the function that finds people of a directory or of the first factor. Without it, there are no people but
        endpoint users."""
        self._find_person = find

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the user's confirmed seed in base32, or None if the user has none. Raises StoreError, SecretError."""
        key = (domain_id, name_key(user))

        def query(tx: Tx) -> tuple[SealedSeed | None, int]:
            return repo.seed(tx, *key), audit.share_of(tx, domain_id)

        found, tenant_id = await self._store.read(query)
        if found is None:
            self._given.pop(key)
            return None
        self._given.put(key, found, tenant_id)
        return found.open(self._vault)

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Store the time step of an accepted code, so that the code cannot be used again.

        Return False, and store nothing, in two cases: a code of this step or of a later step was accepted before, or
        the user now has another seed than the one that the method `seed` returned. Raises StoreError.
        """
        key = (domain_id, name_key(user))
        given = self._given.get(key)

        def transaction(tx: Tx) -> bool:
            current = given or repo.seed(tx, *key)
            return current is not None and repo.spend(tx, current, step)

        return await self._store.write(transaction)

    async def enrol(self, domain_id: int, which: UserKey) -> tuple[Enrolment, str]:
        """Begin an enrolment with a new seed. Return the enrolment, and the secret part of the enrolment's link. A
        person of a directory or of the first factor becomes an endpoint user without a password.

        Raises NotFound if the user is unknown. Raises Conflict if the first factor cannot be asked.
        """
        which, is_person = await self._named(domain_id, which)
        seed = b32encode(secrets.token_bytes(SEED_OCTETS)).decode()
        link = secrets.token_urlsafe(LINK_OCTETS)
        at = self._clock()
        expires_at, touched = at + self.life_us, list[UserRef]()

        def transaction(tx: Tx) -> UserRef:
            if is_person and isinstance(which, str) and repo.locate(tx, domain_id, which) is None:
                self._users.add_in(tx, domain_id, UserChange(which, DIRECTORY_USER), source=DIRECTORY)
            user = _located(tx, domain_id, which)
            touched.append(user)
            repo.begin_enrolment(
                tx, self._vault, user.id, seed, link_hash=token_hash(link), at=at, expires_at=expires_at
            )
            _note(tx, "user.totp.enrol", user, at)
            return user

        user = await self._change(transaction, touched)
        return self._enrolment(user, seed, MAX_WRONG_CODES, expires_at), link

    async def confirm(self, domain_id: int, which: UserKey, code: str) -> CodeCheck:
        """Confirm the pending seed of a user if the code is correct.

        Raises NotFound if the user does not exist or has no pending seed. Raises Invalid if the code is not six digits.
        In this case, the code does not count as a wrong code.
        """

        which, _ = await self._named(domain_id, which)

        def find(tx: Tx, at: int) -> Pending | None:
            return repo.pending(tx, _located(tx, domain_id, which).id, at)

        return await self._confirm(find, code)

    async def remove(self, domain_id: int, which: UserKey, check: Callable[[Tx], None] = lambda _tx: None) -> bool:
        """Delete the user's confirmed and pending seeds. Return whether there was a seed. check: a function that raises
        an error in the transaction if the seed must stay. Raises NotFound if the user does not exist."""
        which, _ = await self._named(domain_id, which)
        at, touched = self._clock(), list[UserRef]()

        def transaction(tx: Tx) -> bool:
            user = _located(tx, domain_id, which)
            touched.append(user)
            check(tx)
            cleared = repo.clear_seed(tx, user.id, at)
            if cleared:
                _note(tx, "user.totp.remove", user, at)
            return cleared

        return await self._change(transaction, touched)

    async def login_name(self, domain_id: int, name: str) -> str:
        """Return the name by which logins know a user or a person. Raises NotFound if the domain knows no such name.
        Raises Conflict if the first factor cannot be asked."""
        which, is_person = await self._named(domain_id, name)
        found = await self._store.read(lambda tx: repo.locate(tx, domain_id, which))
        if found is None and not is_person:
            raise NotFound(NO_USER)
        return str(which) if found is None else found.name

    async def _named(self, domain_id: int, which: UserKey) -> tuple[UserKey, bool]:
        """Return the id or the name under which a user's seed is stored, and whether a directory or the first factor
        knows the person. An endpoint user with exactly this name is not looked for elsewhere."""
        if isinstance(which, int) or await self._store.read(lambda tx: repo.locate(tx, domain_id, which)) is not None:
            return which, False
        person = await self._find_person(domain_id, which) if self._find_person else None
        return (which, False) if person is None else (person, True)

    async def behind(self, link: str) -> Enrolment | None:
        """Return the enrolment of a link, or None if the link is unknown, used or expired. Raises StoreError,
        SecretError."""
        at = self._clock()
        found = await self._store.read(lambda tx: repo.pending_by_link(tx, token_hash(link), at))
        if found is None:
            return None
        tries_left = MAX_WRONG_CODES - found.wrong_codes
        return self._enrolment(found.user, found.open(self._vault), tries_left, found.expires_at)

    async def confirm_link(self, link: str, code: str) -> CodeCheck:
        """Confirm the pending seed that belongs to a link. This method works like `confirm`, but finds the user by the
        link. Raises NotFound, Invalid."""
        return await self._confirm(lambda tx, at: repo.pending_by_link(tx, token_hash(link), at), code)

    async def _confirm(self, find: Callable[[Tx, int], Pending | None], code: str) -> CodeCheck:
        """Confirm a pending seed. One transaction checks the code and stores the result, so that a seed cannot be
        confirmed twice and every wrong code is counted.

        find: a function that takes the transaction and the time, and returns the pending enrolment.
        """
        digits, at, touched = _digits(code), self._clock(), list[UserRef]()

        def transaction(tx: Tx) -> CodeCheck:
            waiting = find(tx, at)
            if waiting is None:
                raise NotFound(NOTHING_WAITS)
            touched.append(waiting.user)
            return self._check(tx, waiting, digits, at)

        return await self._change(transaction, touched)

    async def _change(self, work: Work[T], touched: Sequence[UserRef]) -> T:
        """Run a write transaction. Then drop the users in `touched` from the cache, even if the transaction failed."""
        try:
            return await self._store.write(work)
        finally:
            for user in touched:
                self._users.drop(user.domain_id, user.name)

    def _check(self, tx: Tx, waiting: Pending, digits: str, at: int) -> CodeCheck:
        seed = waiting.open(self._vault)
        step = matching_step(seed, digits, at)
        if step is not None:
            repo.set_seed(tx, self._vault, waiting.user_id, seed, step, at)
            repo.end_enrolment(tx, waiting.user_id)
            _note(tx, "user.totp.confirm", waiting.user, at)
            return CodeCheck(right=True)
        tries_left = MAX_WRONG_CODES - waiting.wrong_codes - 1
        if tries_left <= 0:
            repo.end_enrolment(tx, waiting.user_id)
        else:
            repo.count_wrong_code(tx, waiting.user_id)
        return CodeCheck(
            right=False,
            tries_left=tries_left,
            off_s=seconds_off(seed_octets(seed), partial(compare_digest, digits), at),
        )

    def _enrolment(self, user: UserRef, seed: str, tries_left: int, expires_at: int) -> Enrolment:
        uri = otpauth(seed, issuer=self._issuer(user.domain_id), account=user.name)
        return Enrolment(user, seed, uri, tries_left, expires_at)

    async def image(self, enrolment: Enrolment) -> str:
        """Return the QR code of a seed as a `data:` address. One is made at a time, so that logins do not wait."""
        return await trio.to_thread.run_sync(qr_code, enrolment.otpauth, "address", limiter=self._one_image_at_a_time)

    @property
    def issuer(self) -> IssuerOf:
        """The function that returns the issuer of a domain. Authenticator apps display the issuer."""
        return self._issuer


def _digits(code: str) -> str:
    """Return the six digits of a code, see `plain_code`. Raises Invalid if the code is not six digits."""
    digits = plain_code(code)
    if not _CODE.fullmatch(digits):
        raise Invalid.about("the code must have six digits", "code")
    return digits


def _note(tx: Tx, action: str, user: UserRef, at: int) -> None:
    record_in(tx, action, user.domain_id, f"user {user.id} {user.name}", {"motp": [HIDDEN, HIDDEN]}, at=at)


def _located(tx: Tx, domain_id: int, which: UserKey) -> UserRef:
    user = repo.locate(tx, domain_id, which)
    if user is None:
        raise NotFound(NO_USER)
    return user
