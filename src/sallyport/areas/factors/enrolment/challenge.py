"""Enrolment links that a challenge shows to people without a factor, for the provider `own`.

The person has typed the right password, and nothing else. So anybody who knows the password of a person without a
factor can get such a link, and only a domain that allows it has them. The secret is a code that a person can type on
another device.
"""

import secrets
from typing import Final

from sallyport.areas.factors.enrolment import repo
from sallyport.areas.factors.enrolment.link import MAX_LINKS, PATH
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.factors.stepup.stepup import ALPHABET, CODE_LENGTH
from sallyport.areas.mfa.provider import Question
from sallyport.areas.users.administrators import Administrators
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import NotFound
from sallyport.base.secret import token_hash
from sallyport.base.text import fold_name
from sallyport.store import audit
from sallyport.store.model import Store, Tx

LIFE_US: Final = 600 * SECOND
"""Time for which a link is valid, in microseconds."""


class ChallengeLinks:
    """The links that challenges show. Implements `mfa.host.EnrolmentRequests`. site: the base URL of the pages of
    people, or empty if the service has none."""

    def __init__(self, store: Store, pauses: Pauses, administrators: Administrators, site: str, clock: Clock) -> None:
        self._store = store
        self._pauses = pauses
        self._administrators = administrators
        self._site = site.rstrip("/")
        self._clock = clock

    @property
    def address_length(self) -> int:
        """The length of the address of a link."""
        return len(f"{self._site}{PATH}") + CODE_LENGTH

    async def offer(self, question: Question) -> str | None:
        """Make a link for the person of a login, and return its address. It replaces the former link of this kind.

        Return None if the person has a factor, also one that the domain does not accept, or an open link of an
        operator. Return None for a person without prompts at present, for an administrator, and if a page cannot check
        the password. Raises StoreError.
        """
        person, at = Person(question.domain_id, question.user), self._clock()
        code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))

        def transaction(tx: Tx) -> bool:
            if not repo.checks_passwords(tx, person.domain_id):
                return False
            if repo.has_factor(tx, person, at) or repo.number(tx, person.domain_id) >= MAX_LINKS:
                return False
            if self._pauses.is_paused(self._pauses.find(tx, (person.domain_id, fold_name(person.name)))):
                return False
            if person.key in self._administrators.of(tx, person.domain_id):
                return False
            if not repo.show(tx, person, token_hash(code), at, at + LIFE_US):
                return False
            changes = audit.changed({}, {"by": "challenge"})
            audit.record_in(tx, "user.enrol", person.domain_id, f"user {person.name}", changes, at=at)
            return True

        try:
            is_shown = await self._store.write(transaction)
        except NotFound:  # the domain was removed meanwhile
            return None
        return f"{self._site}{PATH}{code}" if is_shown else None
