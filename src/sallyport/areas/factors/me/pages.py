"""The pages of self-service: `/me`, and `/me/enrol/...` for enrolment links.

GET shows a page and changes nothing. Each form of `/me` has the field `do`, which names what to do. Options of passkeys
are part of the answer to a form, because they belong to a challenge in the store.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute

from sallyport.areas.domains.domain import Domain
from sallyport.areas.factors.bypass_codes.code import in_groups
from sallyport.areas.factors.denials import Denial, Denials, DeniedAt
from sallyport.areas.factors.enrolment.link import PATH as LINKS
from sallyport.areas.factors.enrolment.link import EnrolmentLink
from sallyport.areas.factors.enrolment.service import EnrolmentLinks
from sallyport.areas.factors.me import texts
from sallyport.areas.factors.me.company import Answer, CompanyProof, Step
from sallyport.areas.factors.me.host import PasswordResult, Surroundings
from sallyport.areas.factors.me.service import PASSKEY, Factors, OwnFactors
from sallyport.areas.factors.me.session import PersonSession
from sallyport.areas.factors.me.sessions import PeopleSessions
from sallyport.areas.factors.remembered.service import RememberedStations
from sallyport.areas.factors.stepup.stepup import plain
from sallyport.areas.mfa.provider import Strength
from sallyport.areas.tenancy.guesses import Guesses, network_of
from sallyport.base.actor import Actor, acting_as
from sallyport.base.clock import Clock, iso_seconds
from sallyport.base.errors import Invalid, NotFound, Refused, TooMany
from sallyport.base.fair import FairLimiter
from sallyport.base.wire import Row
from sallyport.store.model import Tx
from sallyport.web.people.site import PeoplePage, PeopleSite
from sallyport.web.people.visit import PeopleVisit

PATH: Final = "/me"
FOLDER: Final = Path(__file__).parent / "templates"
PROOFS: Final = frozenset({"prove", "code", "passkey"})
"""The forms of a sign-in that needs a second factor."""
SHOWN_LOGINS: Final = 20
"""Maximum number of logins, and of devices, that a page shows."""
AT_ONCE: Final = 4
"""Maximum number of passwords of a tenant that are checked at the same time."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The services of the pages. guesses: the wrong passwords of each address."""

    sessions: PeopleSessions
    factors: OwnFactors
    remembered: RememberedStations
    links: EnrolmentLinks
    around: Surroundings
    guesses: Guesses
    denials: Denials
    clock: Clock


@dataclass(frozen=True, slots=True)
class _OpenedLink:
    """The link with which a person has come."""

    links: EnrolmentLinks
    link: EnrolmentLink
    token: str

    def end(self, browser: str) -> Callable[[Tx, int], bool]:
        """Return a function that ends the link in a transaction. browser: the browser to which the link is bound."""
        return lambda tx, at: self.links.use_in(tx, self.link, self.token, browser, at)


class MePages:
    """The pages of self-service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._turns: dict[int, FairLimiter[str]] = {}
        self._steps: Mapping[str, Step] = {
            "prove": self._proof_page,
            "code": self._prove_by_code,
            "passkey": self._prove_by_passkey,
            "add-passkey": self._begin_passkey,
            "save-passkey": self._save_passkey,
            "remove-passkey": self._remove_passkey,
            "add-app": self._begin_app,
            "save-app": self._save_app,
            "remove-app": self._remove_app,
            "make-codes": self._make_codes,
            "end": self._end_session,
            "forget": self._forget_station,
            "not-me": self._deny,
        }

    def routes(self, site: PeopleSite) -> list[BaseRoute]:
        """Return the routes of the pages."""
        return [
            site.route(PATH, self.show, self.submit, templates=FOLDER),
            site.route(f"{LINKS}{{token}}", self.show_link, self.submit_link, templates=FOLDER),
            *CompanyProof(self._parts.factors, self.do).routes(partial(site.route, templates=FOLDER)),
        ]

    # --- /me --------------------------------------------------------------------------------------------------

    async def show(self, visit: PeopleVisit) -> Answer:
        """Show the form of the sign-in, or the factors of the person."""
        session = await self._session(visit)
        if session is None:
            return self._sign_in_page(visit)
        if not session.is_complete:
            return self._continue_page(session)
        return await self._overview(session)

    async def submit(self, visit: PeopleVisit) -> Answer:
        """Sign in or out, or do what the form says."""
        wanted = visit.fields.get("do", "")
        if wanted == "sign-out":
            await self._parts.sessions.end(visit.browser)
            visit.renew()
            return RedirectResponse(PATH, 303)
        if wanted == "sign-in":
            return await self._sign_in(visit)
        step = self._steps.get(wanted, _no_form)
        return await self.do(visit, step, is_proof=wanted in PROOFS)

    async def do(self, visit: PeopleVisit, step: Step, *, is_proof: bool = True) -> Answer:
        """Do a step of the sign-in of a browser, and show its errors. is_proof: whether the step is one of a sign-in
        that needs a second factor. Raises NotFound if a sign-in without a second factor tries another step."""
        session = await self._session(visit)
        if session is None:
            return self._sign_in_page(visit, "Your sign-in has ended. Sign in again.")
        if step is _no_form or not (session.is_complete or is_proof):
            raise NotFound("there is no such form")
        return await self._run(visit, session, step)

    async def _run(self, visit: PeopleVisit, session: PersonSession, step: Step) -> Answer:
        """Do what a form says. An error is shown on the page of the sign-in, or on that of the factors."""
        domain = self._domain(session)
        with acting_as(Actor("person", session.user_name, tenant_id=domain.tenant_id)):
            try:
                return await step(visit, session)
            except Refused as error:
                left = await self._parts.sessions.of(visit.browser)
                if left is None:
                    return self._sign_in_page(visit, f"{texts.sentence(error)} Sign in again.")
                if not left.is_complete:
                    return await self._proof_page(visit, left, texts.sentence(error))
                return await self._overview(left, problem=texts.sentence(error))

    async def _session(self, visit: PeopleVisit) -> PersonSession | None:
        session = await self._parts.sessions.of(visit.browser)
        if session is None or session.domain_id not in self._parts.around.domains().by_id:
            return None
        visit.belongs_to(self._domain(session).tenant_id)
        return session

    def _domain(self, session: PersonSession) -> Domain:
        return self._parts.around.domains().present(session.domain_id)

    # --- the sign-in ------------------------------------------------------------------------------------------

    def _sign_in_page(self, visit: PeopleVisit, problem: str = "") -> PeoplePage:
        """Return the form of the sign-in. If there are several tenants, it does not name the domain: everybody could
        count through the addresses of all domains, and read the names of the tenants' domains."""
        domain = self._chosen(visit.fields.get("domain") or visit.query.get("domain", ""))
        variables = {
            "domain": domain,
            "is_named": len(self._parts.around.domains().by_tenant) == 1,
            "user": visit.fields.get("user", ""),
            "problem": problem,
        }
        return PeoplePage("me_sign_in.html", "Your second factors", variables, 400 if problem else 200)

    def _chosen(self, number: str) -> Domain | None:
        """Return the domain that an address or a form names. Without a number, return the only domain, or None."""
        by_id = self._parts.around.domains().by_id
        if number:
            return by_id.get(int(number)) if number.isascii() and number.isdecimal() and len(number) < 19 else None
        return next(iter(by_id.values())) if len(by_id) == 1 else None

    def _named(self, user: str) -> Domain | None:
        """Return the domain of a name with a realm. If there are several tenants, return None: otherwise a tenant could
        declare the realm of another one, and get its passwords."""
        domains = self._parts.around.domains()
        _, _, realm = user.rpartition("@")
        if not realm or len(domains.by_tenant) != 1:
            return None
        return domains.by_realm(next(iter(domains.by_tenant)), realm)

    async def _sign_in(self, visit: PeopleVisit) -> Answer:
        user, given = visit.fields.get("user", ""), visit.fields.get("domain", "")
        domain = self._chosen(given) or (None if given else self._named(user))
        if domain is None:
            return self._sign_in_page(visit, texts.NO_DOMAIN)
        session, result = await self._checked(visit, domain, user, None)
        if session is None:
            return self._sign_in_page(visit, texts.OF_RESULT[result])
        visit.belongs_to(domain.tenant_id)
        return await self._proof_page(visit, session)

    async def _checked(
        self, visit: PeopleVisit, domain: Domain, user: str, link: _OpenedLink | None
    ) -> tuple[PersonSession | None, PasswordResult]:
        """Check a password, and begin the sign-in of its owner. link: the link with which the person has come. Raises
        TooMany if too many wrong passwords came from the address."""
        parts, now = self._parts, self._parts.clock()
        self._check_guesses(visit)
        parts.guesses.count(visit.source, now)  # before the check, so that simultaneous guesses count
        turns = self._turns.setdefault(domain.tenant_id, FairLimiter(AT_ONCE))
        async with turns.slot(network_of(visit.source)):  # one address delays only its own passwords
            checked = await parts.around.passwords.check(domain.id, user, visit.fields.get("password", ""))
        person = checked.person
        if person is None or (link is not None and person.key != link.link.person.key):
            if checked.result in (PasswordResult.REFUSED, PasswordResult.RIGHT):
                parts.guesses.tell(visit.source)
                return None, PasswordResult.REFUSED
            parts.guesses.forgive(visit.source, now)
            return None, checked.result
        parts.guesses.forgive(visit.source, now)
        with_link = None if link is None else link.end(visit.browser)
        begun = parts.sessions.begin(person, visit.renew(), visit.source, checked.stamp, with_link=with_link)
        return await begun, checked.result

    def _continue_page(self, session: PersonSession) -> PeoplePage:
        """Return the page of a sign-in that needs a second factor, after a reload."""
        return PeoplePage("me_continue.html", "Confirm that it is you", {"user": session.user_name})

    async def _proof_page(self, visit: PeopleVisit, session: PersonSession, problem: str = "") -> Answer:
        """Show the factors with which the person may prove."""
        factors = await self._parts.factors.of_person(session.person)
        if not factors.can_prove:
            await self._parts.sessions.end(visit.browser)
            return PeoplePage("me_message.html", "No second factor", {"message": texts.NO_FACTOR})
        options: Row | None = None
        if factors.proves_by_passkey:
            options = await self._parts.factors.passkey_options(session, visit.browser)
        variables = {"user": session.user_name, "options": options, "factors": factors, "problem": problem}
        return PeoplePage("me_prove.html", "Confirm that it is you", variables, 400 if problem else 200)

    async def _prove_by_code(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        with self._guessing(visit):
            await self._parts.factors.prove_by_code(session, visit.fields.get("code", ""), visit.renew)
        return RedirectResponse(PATH, 303)

    async def _prove_by_passkey(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        response = visit.fields.get("credential", "")
        with self._guessing(visit):
            await self._parts.factors.prove_by_passkey(session, visit.browser, response, visit.renew)
        return RedirectResponse(PATH, 303)

    @contextmanager
    def _guessing(self, visit: PeopleVisit) -> Iterator[None]:
        """Count a wrong proof of the block for the address too. Raises TooMany if too many came from the address."""
        guesses, clock = self._parts.guesses, self._parts.clock
        self._check_guesses(visit)
        try:
            yield
        except Invalid:
            guesses.fail(visit.source, clock())
            raise

    def _check_guesses(self, visit: PeopleVisit) -> None:
        if self._parts.guesses.too_many(visit.source, self._parts.clock()):
            raise TooMany("too many wrong passwords, codes or links came from your address: wait some minutes")

    # --- factors ----------------------------------------------------------------------------------------------

    async def _overview(self, session: PersonSession, *, problem: str = "", notice: str = "") -> PeoplePage:
        parts, person = self._parts, session.person
        factors, domain = await parts.factors.of_person(person), self._domain(session)
        needed, now = parts.factors.needed(person, factors), parts.clock()
        logins = await parts.around.logins(person.domain_id, person.name)
        variables = {
            "user": person.name,
            "domain": domain,
            "factors": factors,
            "may_add": session.may_add(needed, now),
            "may_add_passkey": session.may_add(parts.factors.needed(person, factors, PASSKEY), now),
            "by_link": bool(session.is_by_link),
            "may_remove": session.may_remove(needed, now),
            "advice": self._advice(session, factors, needed, now),
            "may_make_codes": parts.factors.may_make_codes(session, factors),
            "logins": logins[:SHOWN_LOGINS],
            "devices": texts.devices(logins),
            "remembered": await parts.remembered.of_person(person),
            "sessions": await parts.around.sessions(person.domain_id, person.name),
            "time": iso_seconds,
            "problem": problem,
            "notice": notice,
        }
        return PeoplePage("me.html", "Your second factors", variables, 400 if problem else 200)

    @staticmethod
    def _advice(session: PersonSession, factors: Factors, needed: Strength, now: int) -> str:
        """Return why the person may not change factors now, or an empty text."""
        if session.may_add(needed, now):
            return ""
        ways = ["with a passkey"] if factors.proves_by_passkey else []
        if factors.company is not None and factors.company >= needed:
            ways.append("by a sign-in at your company")
        if factors.takes_code and needed is Strength.ANY:
            return "To change your factors, confirm that it is you."
        if ways:
            return f"To change your factors, confirm {' or '.join(ways)} that it is you."
        return "To change your factors, ask your administrator for an enrolment link."

    async def _begin_passkey(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        options = await self._parts.factors.begin_passkey(session, visit.browser)
        name = visit.fields.get("name", "")
        return PeoplePage("me_passkey.html", "Add a passkey", {"options": options, "name": name})

    async def _save_passkey(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        fields = visit.fields
        name = fields.get("name", "").strip() or "passkey"
        added = await self._parts.factors.add_passkey(session, visit.browser, fields.get("credential", ""), name)
        return await self._overview(session, notice=f"The passkey {added.name} was added.")

    async def _remove_passkey(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        removed = await self._parts.factors.remove_passkey(session, texts.number(visit.fields.get("id", "")))
        return await self._overview(session, notice=f"The passkey {removed.name} was removed.")

    async def _begin_app(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        made, image = await self._parts.factors.begin_app(session)
        seed = " ".join(made.seed[at : at + 4] for at in range(0, len(made.seed), 4))
        variables = {"otpauth": made.otpauth, "image": image, "seed": seed}
        return PeoplePage("me_app.html", "Add an authenticator app", variables)

    async def _save_app(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        await self._parts.factors.confirm_app(session, visit.fields.get("code", ""))
        return await self._overview(session, notice="The authenticator app was added.")

    async def _remove_app(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        await self._parts.factors.remove_app(session)
        return await self._overview(session, notice="The authenticator app was removed.")

    async def _make_codes(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        made = await self._parts.factors.make_codes(session)
        variables = {"codes": [in_groups(each) for each in made.codes], "until": iso_seconds(made.expires_at)}
        return PeoplePage("me_codes.html", "Your bypass codes", variables)

    async def _end_session(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        wanted = texts.number(visit.fields.get("id", ""))
        own = await self._parts.around.sessions(session.domain_id, session.user_name)
        if all(each.id != wanted for each in own):
            raise NotFound("the session has ended already")
        is_ended = await self._parts.around.end_session(session.domain_id, wanted)
        if is_ended:
            return await self._overview(session, notice="The session was ended.")
        return await self._overview(session, problem="The network device did not end the session. Tell your help desk.")

    async def _forget_station(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        """Forget a remembered station, which needs no fresh proof: the next login there asks for more, not for less."""
        await self._parts.remembered.remove(session.person, texts.number(visit.fields.get("id", "")))
        return await self._overview(session, notice="The next login there asks for your second factor.")

    async def _deny(self, visit: PeopleVisit, session: PersonSession) -> Answer:
        """Deny the last logins. Everything of the person ends, this sign-in too."""
        await self._parts.denials.deny(Denial(session.domain_id, session.user_name, DeniedAt.OWN_PAGES))
        return PeoplePage("me_message.html", "Thank you", {"message": texts.DENIED})

    # --- enrolment links --------------------------------------------------------------------------------------

    async def show_link(self, visit: PeopleVisit) -> Answer:
        """Show a button. The link is not looked up, because mail scanners and previews open it too."""
        return PeoplePage("me_link.html", "Add your second factor", {"person": None, "problem": ""})

    async def submit_link(self, visit: PeopleVisit) -> Answer:
        """Bind the link to the browser, and ask for the password. If the password is right, show the factors."""
        token, parts = visit.at["token"], self._parts
        self._check_guesses(visit)
        token = plain(token) or token  # a person may type the code of a challenge
        found = await parts.links.open(token, visit.browser) if len(token) <= 64 else None
        domain = None if found is None else parts.around.domains().by_id.get(found.domain_id)
        if found is None or domain is None:
            parts.guesses.fail(visit.source, parts.clock())
            return PeoplePage("me_message.html", "This link is not valid", {"message": texts.GONE}, 404)
        visit.belongs_to(domain.tenant_id)
        problem = ""
        if "password" in visit.fields:
            link = _OpenedLink(parts.links, found, token)
            session, result = await self._checked(visit, domain, found.user_name, link)
            if session is not None:
                return RedirectResponse(PATH, 303)
            problem = texts.OF_RESULT[result]
            if result is PasswordResult.REFUSED:
                await parts.links.count_wrong(found)
        variables = {"person": found.person, "domain": domain, "problem": problem}
        return PeoplePage("me_link.html", "Add your second factor", variables, 400 if problem else 200)


async def _no_form(visit: PeopleVisit, session: PersonSession) -> Answer:
    """Answer an unknown form with 404."""
    raise NotFound("there is no such form")
