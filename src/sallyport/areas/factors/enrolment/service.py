"""The enrolment links of all domains."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from sallyport.areas.factors.bypass_codes.service import LoginName
from sallyport.areas.factors.enrolment import people_repo, repo
from sallyport.areas.factors.enrolment.link import (
    KEPT_US,
    LINK_OCTETS,
    MAX_LINKS,
    MAX_WRONG,
    PAUSE_US,
    EnrolmentLink,
    LinkState,
    NotEnrolled,
    Progress,
)
from sallyport.areas.factors.enrolment.people_repo import Scope
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.users.administrators import Administrators
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, TooMany, invalid_field
from sallyport.base.secret import token_hash
from sallyport.base.text import fold
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.slices import in_batches

NO_ADDRESS: Final = "the directories of the domain have no mail address of this user: use the link"
TOO_MANY: Final = f"a domain has at most {MAX_LINKS} enrolment links: wait until some have expired"


@dataclass(frozen=True, slots=True)
class Host:
    """What the links need of other areas.

    passkey_host: the host for which passkeys are made. is_local: whether the people of a domain are its endpoint users.
    login_name: returns the name by which logins know a user.
    """

    passkey_host: Callable[[], str]
    is_local: Callable[[int], bool]
    login_name: LoginName
    administrators: Administrators


@dataclass(frozen=True, slots=True)
class Queued:
    """The result of queueing the mails to a group. without_address: the number of people without a mail address.
    skipped: the number of administrators, if the caller may not change their factors. waiting: the number of people
    with a mail that is queued, or with a link by mail that is valid."""

    queued: int
    without_address: int
    skipped: int
    waiting: int


class EnrolmentLinks:
    """The enrolment links of all domains. life_us: the time for which a link is valid, in microseconds."""

    def __init__(self, store: Store, host: Host, clock: Clock = now_us, *, life_us: int) -> None:
        self._store = store
        self._host = host
        self._clock = clock
        self.life_us = life_us

    # --- operators --------------------------------------------------------------------------------------------

    async def person(self, domain_id: int, name: str) -> Person:
        """Return the person with a name, as logins name the person. Raises NotFound, Conflict."""
        return Person(domain_id, await self._host.login_name(domain_id, name))

    async def make(self, person: Person) -> tuple[str, int]:
        """Make a link for a person. Return its secret and the time at which it expires. It replaces the person's former
        link."""
        secret, at = secrets.token_urlsafe(LINK_OCTETS), self._clock()

        def transaction(tx: Tx) -> None:
            self._check_number(tx, person.domain_id)
            repo.give(tx, person, token_hash(secret), at, at + self.life_us)
            self._note(tx, person, "link", at)

        await self._store.write(transaction)
        return secret, at + self.life_us

    async def mail(self, person: Person) -> str:
        """Queue a mail with a link to a person, and return the address. Raises Conflict if there is no address. Raises
        TooMany if a mail was queued for the person within the last minute."""
        at = self._clock()

        def transaction(tx: Tx) -> str:
            self._check_number(tx, person.domain_id)
            address = people_repo.email_of(tx, person.domain_id, person.key)
            if not address:
                raise Conflict(NO_ADDRESS)
            if repo.has_recent_mail(tx, person, at - PAUSE_US):
                raise TooMany("a mail was sent to this user a moment ago: wait a minute")
            repo.queue(tx, person, address, "", at)
            self._note(tx, person, "mail", at)
            return address

        return await self._store.write(transaction)

    async def mail_group(self, domain_id: int, group: str, *, is_admin: bool) -> Queued:
        """Queue a mail to each person of a group that has no factor. Raises Invalid if there is no such group.

        The people without a mail address are left out, those with a valid link by mail, and the administrators if the
        caller does not have the role admin.
        """
        scope = self._scope(domain_id, group)

        def query(tx: Tx) -> tuple[list[NotEnrolled], frozenset[str]]:
            if not people_repo.groups(tx, scope):
                raise invalid_field("groupName", "must be the name of a group of the domain")
            found, total = people_repo.not_enrolled(tx, scope, 0, MAX_LINKS)
            if total > MAX_LINKS:
                raise Conflict(TOO_MANY)
            return found, frozenset() if is_admin else self._host.administrators.of(tx, domain_id)

        found, administrators = await self._store.search(query)
        reachable = [each for each in found if each.email]
        permitted = [each for each in reachable if fold(each.user_name) not in administrators]
        now = self._clock()
        chosen = [each for each in permitted if not _has_mail(each, now)]
        await in_batches(self._store, chosen, partial(self._queue_all, domain_id, group))
        skipped, waiting = len(reachable) - len(permitted), len(permitted) - len(chosen)
        return Queued(len(chosen), len(found) - len(reachable), skipped, waiting)

    def _queue_all(self, domain_id: int, group: str, tx: Tx, chosen: Iterator[NotEnrolled]) -> None:
        at = self._clock()
        self._check_number(tx, domain_id)
        for each in chosen:
            person = Person(domain_id, each.user_name)
            repo.queue(tx, person, each.email, group, at)
            self._note(tx, person, "mail", at)

    async def not_enrolled(self, domain_id: int, group: str, offset: int, size: int) -> tuple[list[NotEnrolled], int]:
        """Return a page of the people without a factor, ordered by name, and the number of all. group: the name of a
        group, or empty for all people."""
        scope = self._scope(domain_id, group)
        return await self._store.search(lambda tx: people_repo.not_enrolled(tx, scope, offset, size))

    async def progress(self, domain_id: int) -> list[Progress]:
        """Return the progress of the mails to groups of a domain."""
        return await self._store.search(lambda tx: repo.progress(tx, domain_id))

    # --- the person -------------------------------------------------------------------------------------------

    async def open(self, secret: str, browser: str) -> EnrolmentLink | None:
        """Bind a link to a browser, and return it. Return None if the link is unknown, has ended or expired, or belongs
        to another browser. browser: the secret in the cookie of the browser."""
        hashed, own, at = token_hash(secret), token_hash(browser), self._clock()
        return await self._store.write(lambda tx: repo.bind(tx, hashed, own, at))

    async def count_wrong(self, link: EnrolmentLink) -> None:
        """Count a wrong password. The link ends with the last one."""
        await self._store.write(lambda tx: repo.count_wrong(tx, link.id, MAX_WRONG))

    def use_in(self, tx: Tx, link: EnrolmentLink, secret: str, browser: str, at: int) -> bool:
        """End a link in the transaction in which its person signs in. Return False if it has ended meanwhile. A link
        that a challenge has shown ends with the first factor of the person: anybody with the password can get one."""
        if link.state == LinkState.SHOWN and repo.has_factor(tx, link.person, at):
            return False
        return repo.use(tx, link.id, token_hash(secret), token_hash(browser), at)

    # --- over time --------------------------------------------------------------------------------------------

    async def purge(self, now: int) -> None:
        """Delete the links that have expired a week ago. now: the time in microseconds. It is not that of a clock which
        may be wrong for a while: a link that is still valid would be deleted."""
        before = now - KEPT_US
        while await self._store.write(lambda tx: repo.purge(tx, before)):
            pass

    def _scope(self, domain_id: int, group: str = "") -> Scope:
        return Scope(domain_id, self._host.is_local(domain_id), self._host.passkey_host(), group)

    @staticmethod
    def _check_number(tx: Tx, domain_id: int) -> None:
        audit.tenant_of(tx, domain_id)  # refuses a domain that was removed
        if repo.number(tx, domain_id) >= MAX_LINKS:
            raise Conflict(TOO_MANY)

    @staticmethod
    def _note(tx: Tx, person: Person, by: str, at: int) -> None:
        changes = audit.changed({}, {"by": by})
        audit.record_in(tx, "user.enrol", person.domain_id, f"user {person.name}", changes, at=at)


def _has_mail(person: NotEnrolled, now: int) -> bool:
    """Return whether a mail to a person is queued, or was sent and its link is valid."""
    is_valid = person.expires_at is not None and person.expires_at > now
    return is_valid and person.link in (LinkState.QUEUED, LinkState.SENDING, LinkState.SENT)
