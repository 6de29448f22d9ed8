"""The factors of a person with a sign-in at /me: proofs, additions and removals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from sallyport.areas.factors.bypass_codes.code import MAX_HOURS, Wanted, digits_of
from sallyport.areas.factors.bypass_codes.service import BypassCodes, MadeCodes
from sallyport.areas.factors.enrolment import people_repo
from sallyport.areas.factors.enrolment.mailing import SendsMail
from sallyport.areas.factors.me import repo
from sallyport.areas.factors.me.host import Surroundings
from sallyport.areas.factors.me.session import PersonSession
from sallyport.areas.factors.me.sessions import PeopleSessions
from sallyport.areas.factors.openid.service import CompanySignIns, SignInAtMe
from sallyport.areas.factors.passkeys.passkey import Binding, Passkey, Person
from sallyport.areas.factors.passkeys.repo import passkeys_of
from sallyport.areas.factors.passkeys.service import Passkeys
from sallyport.areas.mfa.fields import FACTORS
from sallyport.areas.mfa.provider import Code, Strength
from sallyport.areas.users.repo import seed
from sallyport.areas.users.totp import OneTimeSeeds
from sallyport.areas.users.user import Enrolment
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, Forbidden, Invalid, Refused
from sallyport.base.totp import matching_steps, seed_octets
from sallyport.base.wire import Row
from sallyport.store.model import Store, Tx
from sallyport.web.people.visit import PeopleVisit

PASSKEY: Final = "passkey"
APP: Final = "totp"
COMPANY: Final = "oidc"
BYPASS: Final = "bypass"
LOCKED: Final = "too many failures: wait some minutes"
WRONG_CODE: Final = "the code is wrong, or was used before"
NOT_ACCEPTED: Final = "your domain does not accept this factor"
NO_CODES: Final = "your domain does not let you make bypass codes, or you have signed in with one"
CHANGED: Final = "your sign-in has ended, because your password or your account has changed"
LAST: Final = "this is your last factor: add another one first"
HAS_APP: Final = (
    "a link does not replace your app: confirm with it that it is you, or let your administrator remove the app"
)
NOT_FRESH: Final = "confirm first that it is you: prove a factor again"
TOO_WEAK: Final = (
    "your sign-in is not strong enough to change your factors: sign in with a stronger factor, such as a passkey, or "
    "ask your administrator for an enrolment link"
)
SUBJECT: Final = "Your second factors were changed"
_TEXT: Final = """Hello {user},

{change} for your logins at {domain}, from the address {source}.

If it was not you, tell your administrator at once, and change your password.
"""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors of a person. passkeys: those that can be used at this host. others: passkeys of another host.
    has_app: whether the person has an authenticator app. has_bypass_code: whether the person has a bypass code, which
    proves, but is no factor of its own. company: the highest strength that a sign-in at the company can prove, or None
    if the domain has none. permitted: the factors that the domain accepts. A factor that it does not
    accept is shown, and proves nothing."""

    passkeys: Sequence[Passkey]
    others: Sequence[Passkey]
    has_app: bool
    has_bypass_code: bool
    company: Strength | None
    permitted: frozenset[str]

    @property
    def can_prove(self) -> bool:
        """Whether the person can prove that it is the person."""
        return self.proves_by_passkey or self.takes_code or self.company is not None

    @property
    def takes_code(self) -> bool:
        """Whether the person can prove by a typed code."""
        return self.proves_by_app or self.has_bypass_code

    @property
    def proves_by_passkey(self) -> bool:
        """Whether the person can prove by a passkey."""
        return bool(self.passkeys) and PASSKEY in self.permitted

    @property
    def proves_by_app(self) -> bool:
        """Whether the person can prove by a code of an app."""
        return self.has_app and APP in self.permitted


class OwnFactors:
    """The factors of signed-in people. mails: the mail of the service."""

    def __init__(
        self,
        store: Store,
        passkeys: Passkeys,
        bypass_codes: BypassCodes,
        seeds: OneTimeSeeds,
        sign_ins: CompanySignIns,
        sessions: PeopleSessions,
        surroundings: Surroundings,
        mails: SendsMail,
        clock: Clock,
    ) -> None:
        self._store = store
        self._passkeys = passkeys
        self._bypass_codes = bypass_codes
        self._seeds = seeds
        self._sign_ins = sign_ins
        self._sessions = sessions
        self._around = surroundings
        self._mails = mails
        self._clock = clock

    async def of_person(self, person: Person) -> Factors:
        """Return the factors of a person."""
        found, host = await self._passkeys.of_person(person), self._passkeys.host
        usable = [each for each in found if each.usable(host)]
        has_app = await self._seeds.seed(person.domain_id, person.name) is not None
        permitted = frozenset(each for each in FACTORS if self._around.permits(person.domain_id, each))
        has_code = BYPASS in permitted and await self._bypass_codes.has_code(person.domain_id, person.name)
        company = self._sign_ins.strongest(person.domain_id)
        others = [each for each in found if not each.usable(host)]
        return Factors(usable, others, has_app, has_code, company, permitted)

    def needed(self, person: Person, factors: Factors, added: str = "") -> Strength:
        """Return the strength that a proof needs, so that the person may change factors.

        added: the factor to add, or empty. The first passkey needs a proof like a passkey, and so mostly comes by a
        link: a phished code of an app, or a bypass code, adds none. Passkeys of another host count, so that a changed
        host does not make codes suffice.
        """
        has_passkey = PASSKEY in factors.permitted and bool(factors.passkeys or factors.others)
        if has_passkey or added == PASSKEY:
            return Strength.PHISHING_RESISTANT
        return self._around.minimum(person.domain_id)

    # --- proofs -----------------------------------------------------------------------------------------------

    async def passkey_options(self, session: PersonSession, browser: str) -> Row:
        """Return the options for `navigator.credentials.get`. Raises Conflict, TooMany."""
        return await self._passkeys.begin_assertion(session.person, _binding(session, browser))

    async def prove_by_passkey(
        self, session: PersonSession, browser: str, response: str, renew: Callable[[], str]
    ) -> PersonSession:
        """Check the response of a passkey. renew: gives the browser another secret, and returns it. Raises Invalid,
        Conflict."""
        if not self._around.permits(session.domain_id, PASSKEY):
            raise Conflict(NOT_ACCEPTED)
        try:
            await self._passkeys.finish_assertion(session.person, _binding(session, browser), response)
        except Invalid:
            await self._sessions.count_wrong(session)
            raise
        return await self._proven(session, renew, PASSKEY, Strength.PHISHING_RESISTANT)

    async def prove_by_code(self, session: PersonSession, code: str, renew: Callable[[], str]) -> PersonSession:
        """Check a code of the person's app, or a bypass code. A wrong code counts for the lock-outs. Raises Invalid,
        Conflict."""
        person = session.person
        if self._around.passwords.is_locked(person):
            raise Conflict(LOCKED)
        factors = await self.of_person(person)
        is_bypass = factors.has_bypass_code and bool(digits_of(code))
        if is_bypass and await self._bypass_codes.spend(person.domain_id, person.name, code):
            return await self._proven(session, renew, BYPASS, Strength.ANY)
        known = await self._seeds.seed(person.domain_id, person.name) if factors.proves_by_app else None
        steps = [] if known is None else matching_steps(seed_octets(known), Code(code).matches, self._clock())
        for step in steps:
            if await self._seeds.spend(person.domain_id, person.name, step):
                return await self._proven(session, renew, APP, Strength.ANY)
        await self._sessions.count_wrong(session)
        await self._around.passwords.count_wrong_code(person)
        raise Invalid.about(WRONG_CODE, "code")

    async def company_address(self, session: PersonSession, browser: str) -> str:
        """Return the address at which the person signs in at the company. Raises Conflict, ProviderDown."""
        if self._around.passwords.is_locked(session.person):
            raise Conflict(LOCKED)
        return await self._sign_ins.address(_at_me(session), browser)

    async def prove_by_company(self, session: PersonSession, visit: PeopleVisit) -> PersonSession:
        """Check the sign-in at the company with which a browser returns. The browser then gets another secret, so that
        the same sign-in proves nothing again. Raises Forbidden, Unauthenticated, Conflict, ProviderDown."""
        if self._around.passwords.is_locked(session.person):
            raise Conflict(LOCKED)
        asking, domain = _at_me(session), visit.at["domain"]
        strength = await self._sign_ins.prove(asking, domain, visit.browser, visit.query, visit.source)
        return await self._proven(session, visit.renew, COMPANY, strength)

    async def _proven(
        self, session: PersonSession, renew: Callable[[], str], factor: str, strength: Strength
    ) -> PersonSession:
        proven = await self._sessions.prove(session, renew(), factor, strength)
        self._around.passwords.forgive(session.person)
        return proven

    # --- changes ----------------------------------------------------------------------------------------------

    async def begin_passkey(self, session: PersonSession, browser: str) -> Row:
        """Return the options for `navigator.credentials.create`. Raises Forbidden, Conflict, TooMany."""
        await self._check(session, PersonSession.may_add, PASSKEY)
        return await self._passkeys.begin_registration(session.person, _binding(session, browser))

    async def add_passkey(self, session: PersonSession, browser: str, response: str, name: str) -> Passkey:
        """Store the passkey that a browser has made. Raises Forbidden, Invalid, Conflict."""
        await self._check(session, PersonSession.may_add, PASSKEY)
        added = await self._passkeys.finish_registration(session.person, _binding(session, browser), response, name)
        await self._tell(session, f'The passkey "{added.name}" was added')
        return added

    async def remove_passkey(self, session: PersonSession, passkey_id: int) -> Passkey:
        """Remove a passkey. The other sign-ins of the person end. Raises Forbidden, NotFound, Conflict."""
        await self._check(session, PersonSession.may_remove)

        def check(tx: Tx) -> None:
            usable, has_app = self._stored(tx, session.person)
            if usable == [passkey_id] and not has_app:
                raise Conflict(LAST)

        removed = await self._passkeys.remove(session.person, passkey_id, check)
        await self._end_others(session)
        await self._tell(session, f'The passkey "{removed.name}" was removed')
        return removed

    async def begin_app(self, session: PersonSession) -> tuple[Enrolment, str]:
        """Return a new seed for an authenticator app, and its QR code as an address. The present app remains valid
        until the first code of the new one. Raises Forbidden, Conflict."""
        await self._check_app(session)
        made, _ = await self._seeds.enrol(session.domain_id, session.user_name)
        return made, await self._seeds.image(made)

    async def confirm_app(self, session: PersonSession, code: str) -> None:
        """Store the new seed if its first code is right. Raises Forbidden, Conflict, NotFound, Invalid."""
        await self._check_app(session)
        checked = await self._seeds.confirm(session.domain_id, session.user_name, code)
        if not checked.right:
            raise Invalid.about(f"this code is wrong{checked.hint}; tries left: {checked.tries_left}", "code")
        await self._tell(session, "An authenticator app was added")

    async def remove_app(self, session: PersonSession) -> None:
        """Remove the authenticator app. The other sign-ins of the person end. Raises Forbidden, Conflict."""
        await self._check(session, PersonSession.may_remove)

        def check(tx: Tx) -> None:
            usable, has_app = self._stored(tx, session.person)
            if has_app and not usable:
                raise Conflict(LAST)

        await self._seeds.remove(session.domain_id, session.user_name, check)
        await self._end_others(session)
        await self._tell(session, "The authenticator app was removed")

    def may_make_codes(self, session: PersonSession, factors: Factors) -> bool:
        """Return whether a person may make bypass codes now. A link does not suffice, nor a bypass code itself."""
        needed = self.needed(session.person, factors)
        return (
            self._around.own_codes(session.domain_id) > 0
            and BYPASS in factors.permitted
            and session.factor in (PASSKEY, APP, COMPANY)
            and session.may_remove(needed, self._clock())
        )

    async def make_codes(self, session: PersonSession) -> MadeCodes:
        """Make bypass codes, which replace the former ones. Raises Forbidden, Conflict."""
        factors = await self._check(session, PersonSession.may_remove, BYPASS)
        if not self.may_make_codes(session, factors):
            raise Conflict(NO_CODES)
        number = self._around.own_codes(session.domain_id)
        made = await self._bypass_codes.make(session.domain_id, session.user_name, Wanted(number, 1, MAX_HOURS))
        await self._tell(session, "New bypass codes were made")
        return made

    async def _check_app(self, session: PersonSession) -> None:
        """Check that a sign-in permits a new app. It would replace the present one, and a link removes no factor.
        Raises Forbidden, Conflict."""
        factors = await self._check(session, PersonSession.may_add, APP)
        if factors.has_app and session.is_by_link:
            raise Conflict(HAS_APP)

    def _stored(self, tx: Tx, person: Person) -> tuple[list[int], bool]:
        """Return the ids of the passkeys that can be used, and whether the person has an app."""
        usable = [each.id for each in passkeys_of(tx, person) if each.usable(self._passkeys.host)]
        return usable, seed(tx, person.domain_id, person.key) is not None

    async def _check(
        self, session: PersonSession, permits: Callable[[PersonSession, Strength, int], bool], added: str = ""
    ) -> Factors:
        """Check that a sign-in permits a change. Return the person's factors. added: the factor to add, or empty.
        Raises Forbidden, Conflict."""
        person, now = session.person, self._clock()
        factors = await self.of_person(person)
        needed = self.needed(person, factors, added)
        if not permits(session, needed, now):
            is_old = permits(replace(session, proven_at=now), needed, now)
            raise Forbidden(NOT_FRESH if is_old else TOO_WEAK)
        if self._around.passwords.is_locked(person):
            raise Conflict(LOCKED)
        if await self._around.passwords.stamp(person) != session.stamp:
            await self._store.write(lambda tx: repo.end_of_people(tx, person.domain_id, [person.key]))
            raise Forbidden(CHANGED)
        if added and added not in factors.permitted:
            raise Conflict(NOT_ACCEPTED)
        return factors

    async def _end_others(self, session: PersonSession) -> None:
        person = session.person
        await self._store.write(lambda tx: repo.end_of_people(tx, person.domain_id, [person.key], but=session.id))

    async def _tell(self, session: PersonSession, change: str) -> None:
        """Tell the person about a change by mail, if the service sends mail and the directory has an address."""
        person = session.person
        log.info("factors_changed", domain_id=person.domain_id, user=person.name, change=change, source=session.source)
        if not self._mails.is_on:
            return
        address = await self._store.read(lambda tx: people_repo.email_of(tx, person.domain_id, person.key))
        if not address:
            return
        domain = self._around.domains().present(person.domain_id)
        text = _TEXT.format(user=person.name, change=change, domain=domain.name, source=session.source)
        try:
            self._mails.send(domain.tenant_id, address, SUBJECT, text)
        except Refused as error:
            log.warning("factors_changed_without_mail", domain_id=person.domain_id, user=person.name, error=str(error))


def _binding(session: PersonSession, browser: str) -> Binding:
    """Return the binding of a challenge to the browser and the sign-in."""
    return Binding(browser, f"me {session.id}")


def _at_me(session: PersonSession) -> SignInAtMe:
    return SignInAtMe(session.id, session.domain_id, session.user_name)
