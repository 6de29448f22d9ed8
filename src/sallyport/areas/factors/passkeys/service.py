"""The passkeys of all domains: registrations, assertions, and their removal."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

import structlog
import trio

from sallyport.areas.factors.passkeys import repo, webauthn
from sallyport.areas.factors.passkeys.passkey import (
    CHALLENGE_OCTETS,
    HANDLE_OCTETS,
    LIFE_US,
    MAX_NAME,
    MAX_OPEN,
    MAX_PASSKEYS,
    Binding,
    Passkey,
    Person,
    RelyingParty,
    relying_party,
)
from sallyport.areas.factors.passkeys.repo import Challenge
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, Invalid, NotFound, TooMany, invalid_field
from sallyport.base.fair import FairLimiter
from sallyport.base.text import fold
from sallyport.base.wire import Row
from sallyport.store import audit
from sallyport.store.model import Store, Tx

REGISTRATION: Final = "registration"
ASSERTION: Final = "assertion"
ENDED: Final = "the request for the passkey has ended: start again"
NO_PASSKEY: Final = "the user has no passkey for this service"
NOT_FOUND: Final = "the user has no passkey with this id"
COUNT_BACK: Final = "the passkey was not accepted: its counter went back, so it may have been copied"
_AT_ONCE: Final = 2

ResultT = TypeVar("ResultT")
log = structlog.get_logger()


class Passkeys:
    """The passkeys of all domains.

    public_url: the setting of this name. The caller of the methods has verified that the request is one of the person:
    this class does not check passwords, links and sign-ins. Signatures are verified in worker threads, two at a time,
    so that many requests do not delay logins. Waiting tenants take turns.
    """

    def __init__(self, store: Store, public_url: str, clock: Clock = now_us) -> None:
        self._store = store
        self._public_url = public_url
        self._clock = clock
        self._at_once = FairLimiter[int](_AT_ONCE)

    @property
    def host(self) -> str:
        """The host for which passkeys are made (rpId), or an empty text if the settings allow no passkeys."""
        try:
            return self.party().id
        except Conflict:
            return ""

    def party(self) -> RelyingParty:
        """Return the relying party of the settings. Raises Conflict if the settings allow no passkeys."""
        return relying_party(self._public_url)

    async def warn(self) -> None:
        """Write a warning to the log if passkeys were made for another host than that of the settings."""
        host = self.host
        others = await self._store.search(lambda tx: repo.number_of_other_hosts(tx, host))
        if others:
            log.warning("passkeys_of_other_hosts", passkeys=others, host=host)

    async def of_person(self, person: Person) -> list[Passkey]:
        """Return a person's passkeys, the oldest first. Raises StoreError."""
        return await self._store.read(lambda tx: repo.passkeys_of(tx, person))

    async def page(self, domain_id: int, user: str, offset: int, size: int) -> tuple[list[Passkey], int]:
        """Return a page of a domain's passkeys, and the number of all. user: the name of a user, or empty for all."""
        return await self._store.search(lambda tx: repo.page(tx, domain_id, fold(user), offset, size))

    async def begin_registration(self, person: Person, binding: Binding) -> Row:
        """Return the options for `navigator.credentials.create`.

        Raises Conflict if the settings allow no passkeys, or if the person has MAX_PASSKEYS. Raises TooMany if too many
        requests of the person are open.
        """
        party = self.party()

        def options(challenge: Challenge, present: list[Passkey]) -> Row:
            if len(present) >= MAX_PASSKEYS:
                raise _too_many()
            handle = challenge.user_handle
            return webauthn.creation_options(party, challenge.challenge, handle, person.name, present)

        return await self._begin(REGISTRATION, person, binding, party, options)

    async def begin_assertion(self, person: Person, binding: Binding) -> Row:
        """Return the options for `navigator.credentials.get`.

        Raises Conflict if the settings allow no passkeys, or if the person has no passkey for the present host. Raises
        TooMany if too many requests of the person are open.
        """
        party = self.party()

        def options(challenge: Challenge, present: list[Passkey]) -> Row:
            usable = [each for each in present if each.usable(party.id)]
            if not usable:
                raise Conflict(NO_PASSKEY)
            return webauthn.request_options(party, challenge.challenge, usable)

        return await self._begin(ASSERTION, person, binding, party, options)

    async def _begin(
        self,
        purpose: str,
        person: Person,
        binding: Binding,
        party: RelyingParty,
        options: Callable[[Challenge, list[Passkey]], Row],
    ) -> Row:
        at, hashed = self._clock(), binding.hash(purpose)
        challenge = Challenge(
            person.domain_id,
            person.key,
            secrets.token_bytes(HANDLE_OCTETS),
            party.id,
            secrets.token_bytes(CHALLENGE_OCTETS),
            at + LIFE_US,
        )

        def transaction(tx: Tx) -> Row:
            audit.tenant_of(tx, person.domain_id)  # refuses a domain that was removed
            present = repo.passkeys_of(tx, person)
            mine = replace(challenge, user_handle=present[0].user_handle) if present else challenge
            made = options(mine, present)
            if repo.number_of_challenges(tx, person, hashed, at) >= MAX_OPEN:
                raise TooMany("too many requests for passkeys of this user are open: wait two minutes")
            repo.put_challenge(tx, hashed, mine)
            return made

        return await self._store.write(transaction)

    async def finish_registration(self, person: Person, binding: Binding, response: str, name: str) -> Passkey:
        """Store the passkey of a registration, and return it. The challenge ends, even if the response is refused.

        response: the browser's `RegistrationResponseJSON`. name: the name that the person gives to the passkey. Raises
        Conflict if the challenge has ended, or if the passkey is registered already. Raises Invalid if the response is
        not accepted.
        """
        label, party, at = _label(name), self.party(), self._clock()
        challenge, _, tenant_id = await self._take(REGISTRATION, person, binding, party)
        new = await self._in_turn(tenant_id, lambda: webauthn.registered(party, challenge.challenge, response))

        def transaction(tx: Tx) -> Passkey:
            present = repo.passkeys_of(tx, person)
            if len(present) >= MAX_PASSKEYS:
                raise _too_many()
            if present and present[0].user_handle != challenge.user_handle:
                raise Conflict(ENDED)  # another browser has registered the first passkey meanwhile
            passkey_id = repo.add(tx, person, new, challenge, label, at)
            if passkey_id is None:
                raise Conflict("the passkey is registered already")
            added: Row = {"name": label, "rpId": party.id, "backedUp": new.backed_up}
            changes = audit.changed({}, added)
            audit.record_in(tx, "user.passkey.add", person.domain_id, _target(passkey_id, person), changes, at=at)
            return next(each for each in repo.passkeys_of(tx, person) if each.id == passkey_id)

        return await self._store.write(transaction)

    async def finish_assertion(self, person: Person, binding: Binding, response: str) -> Passkey:
        """Return the passkey that has proved the presence of the person. The challenge ends, even if the response is
        refused.

        response: the browser's `AuthenticationResponseJSON`. Raises Conflict if the challenge has ended. Raises Invalid
        if the response is not accepted.
        """
        party, at = self.party(), self._clock()
        challenge, present, tenant_id = await self._take(ASSERTION, person, binding, party)
        found = await self._in_turn(tenant_id, lambda: webauthn.asserted(party, challenge.challenge, response, present))
        if found.is_count_back:
            self._warn_of_copy(person, found.passkey)
            raise Invalid.about(COUNT_BACK, webauthn.FIELD)
        if not await self._store.write(lambda tx: repo.use(tx, found, at)):
            raise Conflict(ENDED)
        return replace(found.passkey, sign_count=found.sign_count, backed_up=found.backed_up, last_used_at=at)

    async def _take(
        self, purpose: str, person: Person, binding: Binding, party: RelyingParty
    ) -> tuple[Challenge, list[Passkey], int]:
        """End the challenge of a binding. Return it with the person's passkeys and the id of the tenant.

        Raises Conflict if there is no challenge, or if it expired, or belongs to another person or another host.
        """
        at, hashed = self._clock(), binding.hash(purpose)

        def transaction(tx: Tx) -> tuple[Challenge | None, list[Passkey], int]:
            tenant_id = audit.share_of(tx, person.domain_id)
            return repo.take_challenge(tx, hashed), repo.passkeys_of(tx, person), tenant_id

        taken, present, tenant_id = await self._store.write(transaction)
        if taken is None or taken.expires_at <= at:
            raise Conflict(ENDED)
        if (taken.domain_id, taken.user_key, taken.rp_id) != (person.domain_id, person.key, party.id):
            raise Conflict(ENDED)
        return taken, present, tenant_id

    async def remove(self, person: Person, passkey_id: int, check: Callable[[Tx], None] = lambda _tx: None) -> Passkey:
        """Remove a person's passkey, and return it. check: a function that raises an error in the transaction if the
        passkey must stay. Raises NotFound if the person has no such passkey."""
        at = self._clock()

        def transaction(tx: Tx) -> Passkey:
            check(tx)
            removed = repo.remove(tx, person, passkey_id)
            if removed is None:
                raise NotFound(NOT_FOUND)
            changes = audit.changed({"name": removed.name, "rpId": removed.rp_id}, {})
            audit.record_in(tx, "user.passkey.remove", person.domain_id, _target(passkey_id, person), changes, at=at)
            return removed

        return await self._store.write(transaction)

    def _warn_of_copy(self, person: Person, passkey: Passkey) -> None:
        log.warning(
            "passkey_counter_went_back", domain_id=person.domain_id, user=passkey.user_name, passkey_id=passkey.id
        )

    async def _in_turn(self, tenant_id: int, work: Callable[[], ResultT]) -> ResultT:
        """Return the result of work in a worker thread, when it is the turn of the tenant."""
        async with self._at_once.slot(tenant_id):
            return await trio.to_thread.run_sync(work)


def _label(name: str) -> str:
    label = name.strip()
    if not 1 <= len(label) <= MAX_NAME or not label.isprintable():
        raise invalid_field("name", f"must have 1 to {MAX_NAME} printable characters")
    return label


def _too_many() -> Conflict:
    return Conflict(f"a user has at most {MAX_PASSKEYS} passkeys: remove one first")


def _target(passkey_id: int, person: Person) -> str:
    return f"passkey {passkey_id} of {person.name}"
