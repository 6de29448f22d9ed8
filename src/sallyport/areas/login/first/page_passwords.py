"""Check the passwords that people type into pages, by the first factor of their domain.

A password is checked as in a login by PAP, without a device and without login rules. The lock-outs of logins apply.
Wrong codes count together with those of logins, because they need the right password. Wrong passwords lock the name
only at pages. A page has no station, so that no station is locked.
"""

from contextlib import suppress
from functools import partial
from secrets import token_bytes
from typing import Final

import structlog

from sallyport.areas.devices.sightings import new_device
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.factors.me.host import CheckedPassword, PasswordResult
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.login.decision import NOT_CHECKED, refuse
from sallyport.areas.login.first.checker import silent
from sallyport.areas.login.first.password import check_password
from sallyport.areas.login.first.people import LooksUp
from sallyport.areas.login.identity import identify
from sallyport.areas.login.login import PASSED, Login, Reason
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.simulated import client_of, simulated
from sallyport.areas.policy.lockouts.failures import Failure
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict
from sallyport.base.secret import token_hash
from sallyport.base.text import fold
from sallyport.radius.attributes import NAS_IDENTIFIER, USER_NAME, USER_PASSWORD, push_attribute
from sallyport.radius.password import MAX_PASSWORD, Method, hide_password
from sallyport.store.model import Store, Tx

DEVICE: Final = b"sallyport"
MAX_NAME: Final = 253
_SOURCE: Final = "127.0.0.1"
_REFUSED: Final = CheckedPassword(PasswordResult.REFUSED)
_UNAVAILABLE: Final = frozenset({*NOT_CHECKED, Reason.FIRST_FACTOR_CHANGED, Reason.DIRECTORY_ENTRY_TOO_LARGE})

log = structlog.get_logger()


class PagePasswords:
    """The first factors of all domains, for pages. This class implements `ChecksPasswords`."""

    def __init__(self, steps: Pipeline, store: Store, clock: Clock) -> None:
        self._steps = steps
        self._store = store
        self._clock = clock

    async def check(self, domain_id: int, user: str, password: str) -> CheckedPassword:
        """Check a password, and count a wrong one for the lock-outs. Raises StoreError, SecretError.

        A name or a password that is too long for RADIUS is refused.
        """
        domain = self._steps.domains.value.by_id.get(domain_id)
        if domain is None:
            return _REFUSED
        if domain.first_factor in (FirstFactor.NONE, FirstFactor.WEB):
            return CheckedPassword(PasswordResult.UNSUPPORTED)
        name, secret = user.strip().encode(errors="replace"), password.encode(errors="replace")
        if not (1 <= len(name) <= MAX_NAME and 1 <= len(secret) <= MAX_PASSWORD) or b"\0" in secret:
            return _REFUSED
        login = self._login(domain, name, secret)
        reason = await self._steps.first.while_running(partial(self._reason, login, domain))
        if login.found.challenge is not None:
            reason = Reason.METHOD_UNFIT  # the first factor asks for more, and a page cannot answer
        if reason is PASSED:
            await self._steps.recall(login, domain)
            is_locked = self._steps.lockouts.refuses_page(login.attempt(domain))
            reason = Reason.LOCKED_OUT if is_locked else PASSED
        elif reason is not Reason.LOCKED_OUT:
            failure = refuse(reason, domain).failure
            if failure in (Failure.PASSWORD, Failure.UNKNOWN_USER):
                self._steps.lockouts.note_page_failure(login.attempt(domain), failure)
            else:
                await self._count(login, domain, failure)
        log.info("page_password_checked", domain_id=domain.id, user=login.user, reason=reason.value)
        if reason is PASSED:
            person, stamp = Person(domain.id, login.principal), ""
            with suppress(Conflict):  # without a stamp, the sign-in changes nothing
                stamp = await self.stamp(person)
            return CheckedPassword(PasswordResult.RIGHT, person, stamp)
        if reason is Reason.METHOD_UNFIT:
            return CheckedPassword(PasswordResult.UNSUPPORTED)
        return CheckedPassword(PasswordResult.UNAVAILABLE) if reason in _UNAVAILABLE else _REFUSED

    async def stamp(self, person: Person) -> str:
        """Return a text that changes when the password is changed, or when the account is disabled or removed, as far
        as the first factor shows it. Raises Conflict if the first factor cannot be asked."""
        domain = self._steps.domains.value.present(person.domain_id)
        if domain.first_factor is FirstFactor.LOCAL:
            user = await self._steps.user(domain, person.name)
            return "" if user is None else token_hash(f"{user.id} {user.stamp}")
        checker = self._steps.first.checker(domain)
        if not isinstance(checker, LooksUp):
            return token_hash(domain.first_factor)
        reason, found = await self._steps.first.while_running(lambda: checker.look_up(person.name, silent))
        if reason in _UNAVAILABLE:
            raise Conflict("your account cannot be checked now: try again later")
        return token_hash(f"{reason} {found.password_at}")

    def is_locked(self, person: Person) -> bool:
        """Return whether a person is locked out."""
        login, domain = self._of_person(person)
        return self._steps.lockouts.refuses_page(login.attempt(domain))

    async def count_wrong_code(self, person: Person) -> None:
        """Count a wrong code of a person. Raises StoreError."""
        login, domain = self._of_person(person)
        await self._count(login, domain, Failure.CODE)

    def forgive(self, person: Person) -> None:
        """Reset the counts of a person after a sign-in with all factors."""
        login, domain = self._of_person(person)
        login.proven = login.approved = True
        if self._steps.lockouts.has_failures:
            self._steps.lockouts.note_page_success(login.attempt(domain))

    async def _reason(self, login: Login, domain: Domain) -> Reason:
        reason = identify(login, self._steps.domains.value)
        if reason is not PASSED:
            return reason
        await self._steps.recall(login, domain)
        if self._steps.lockouts.refuses_page(login.attempt(domain)):
            return Reason.LOCKED_OUT
        if domain.first_factor is FirstFactor.LOCAL:
            user = await self._steps.user(domain, login.user)
            result = check_password(login.arrival, login.method, user, _no_code)
        else:
            result = await self._steps.first.check(login, domain, _no_code)
        login.take_first(result)
        if result.reason is not PASSED:
            return result.reason
        return PASSED if fold(login.user) else Reason.NO_USER_NAME

    async def _count(self, login: Login, domain: Domain, failure: Failure | None) -> None:
        if failure is None:
            return
        writes = self._steps.lockouts.note_failure(login.attempt(domain), failure)
        device = new_device(login.arrival.request, _SOURCE, 0, login.arrival.at)

        def transaction(tx: Tx) -> None:
            for write in writes:
                write(tx, device)

        if writes:
            await self._store.write(transaction)

    def _of_person(self, person: Person) -> tuple[Login, Domain]:
        domain = self._steps.domains.value.present(person.domain_id)
        login = self._login(domain, person.name.encode(), token_bytes(16).hex().encode())
        login.domain, login.user = domain, person.name
        return login, domain

    def _login(self, domain: Domain, name: bytes, password: bytes) -> Login:
        """Return a login as a RADIUS client of this domain would send it."""
        client, authenticator = client_of(domain, "a page"), token_bytes(16)
        body = push_attribute(USER_NAME, name) + push_attribute(NAS_IDENTIFIER, DEVICE)
        body += push_attribute(USER_PASSWORD, hide_password(password, client.secret, authenticator))
        return simulated(client, _SOURCE, body, authenticator, Method.PAP, self._clock())


def _no_code() -> bool:
    return False
