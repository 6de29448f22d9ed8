"""The provider for the factors that the service checks itself: passkeys, sign-ins at the company's identity provider,
authenticator apps, and bypass codes.

A person proves a factor on a page (`areas.factors.stepup`). The challenge has the address of the page, and a short code
for people who open the page on another device. The answer to the challenge is one of

    digits of the page   binding `code`: the proof is bound to the login by them
    nothing              the other bindings: the login asks whether the person has proved a factor
    a code               of an authenticator app, or a bypass code: no page is needed

So each challenge is one that expects a code, and an empty answer only asks. A person with such codes only gets no page.
If the domain allows it, the challenge of a person without any factor has an enrolment link, and the answer to it asks
for the factor that the person has added. The handle is the id of the step-up, which is that of the login: any node can
continue it, also after a restart.

With the first factor `web`, nobody has checked a password, so that the sign-in at the identity provider is both
factors. `web_problem` says what such a domain demands of the configuration.

Wrong digits are counted for the whole login, in the row of the step-up. A proof is used once: `use` marks it before the
login is approved, and a person can deny the login until then.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import ClassVar, Final

from sallyport.areas.mfa.fields import FACTORS, Binding, Fields, OwnFields, UserIs
from sallyport.areas.mfa.host import Host, Opened, StepUpState
from sallyport.areas.mfa.provider import ENROL, Answer, Code, Enrolled, Enrolment, Outcome, Question, Strength
from sallyport.areas.mfa.totp import Totp
from sallyport.base.errors import Conflict, invalid_field
from sallyport.radius.vendors.stepups import is_impossible, unable

TYPED: Final = frozenset({"totp", "bypass"})
"""The factors whose codes a person can type at the prompt of a device."""
ADDED: Final = frozenset({"passkey", "totp"})
"""The factors that people add by an enrolment link."""
WEAK: Final = frozenset({"bypass", "mail"})
"""The factors that are never a second channel."""
PATIENCE_S: Final = 25.0
"""Time in seconds for which a poll waits for the person. It is less than the deadline of the login path."""
MAX_ADDRESS: Final = 60
"""Maximum length of the address of a page, so that a challenge has room for it (RFC 2865 section 5.18)."""
NO_PAGES: Final = (
    "the pages of people are off: set people_bind, and public_url to their https URL; without pages, only the factors "
    "totp and bypass can be used"
)
NO_MAIL: Final = (
    "needs mail (set smtp_host), and the binding address or unbound: nothing can be typed back to a login that waits"
)
ONLY_OIDC: Final = (
    "its factors must be oidc alone: the first factor web has no password, and the sign-in is both factors"
)
BOUND: Final = "its binding must be code or address: everybody who knows a name can send a link"
NO_WEB_MAIL: Final = "it must not send pages by mail: everybody who knows a name can cause them"
BY_DIRECTORY: Final = "its userIs must be directory_id: a user name of the identity provider may change its owner"
UNBOUND: Final = (
    "the second factor is unbound: whoever sends a link to a user can get in with the user's proof; use the binding "
    "code or address where the devices allow it"
)
SHOWS_LINKS: Final = (
    "a challenge shows an enrolment link to people without a factor: anybody who knows the password of such a person "
    "can enrol; switch enrolByChallenge off when your people have enrolled"
)
ENTER_DIGITS: Final = "Enter the digits that the page shows"
_PROVED: Final = {
    "passkey": "passkey",
    "oidc": "sign-in at the identity provider",
    "totp": "code of the app",
    "bypass": "bypass code",
    "mail": "code by mail",
}
"""The names of proved factors in events."""
_ENDED: Final = {
    StepUpState.DENIED: Answer(Outcome.NOT_ME),
    StepUpState.UNBOUND: Answer(Outcome.UNBOUND, detail="the browser does not have the address of the station"),
    StepUpState.WRONG: Answer(Outcome.NO_TRIES_LEFT, detail="three attempts of this login were wrong"),
    StepUpState.OVER: Answer(Outcome.UNANSWERED),
}


class Own:
    """The provider for the factors that the service checks itself."""

    name: ClassVar[str] = "own"
    fields: ClassVar[type[Fields]] = OwnFields
    asks_for_codes: ClassVar[bool] = True
    most_calls: ClassVar[int] = 100_000  # a call waits for the person, and takes no connection
    empty_s: ClassVar[float] = 3.0
    """Time in seconds for which an empty answer waits for the person. Devices send a request again after about 5 s."""

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, OwnFields)  # noqa: S101  the caller made it with `fields`
        self._fields = fields
        self._accepted = frozenset(fields.factors.split(","))
        self._host = host
        self._totp = Totp(fields, host)

    @property
    def only_codes(self) -> bool:
        """Whether every login needs a typed answer: without a challenge, only mail brings the page to the person."""
        return not self._mails or self._fields.binding is Binding.CODE

    @property
    def _mails(self) -> bool:
        return self._fields.pageByMail and bool(self._on_pages) and self._host.own.has_mail

    @property
    def binds_by_code(self) -> bool:
        """Whether the user must type digits of a page at the prompt of the device."""
        return self._fields.binding is Binding.CODE and bool(self._on_pages)

    @property
    def hints(self) -> Sequence[str]:
        """A warning if nothing binds a proof to its login, and if a challenge shows enrolment links."""
        unbound = [UNBOUND] if self._fields.binding is Binding.UNBOUND and self._on_pages - TYPED else []
        return [*unbound, *([SHOWS_LINKS] if self.shows_links else [])]

    @property
    def shows_links(self) -> bool:
        """Whether a challenge shows an enrolment link to a person without a factor."""
        return self._fields.enrolByChallenge and self._host.own.has_pages

    @property
    def web_problem(self) -> str:
        """Why this configuration cannot confirm users whose password nobody has checked; empty if it can."""
        fields = self._fields
        problems = {
            NO_PAGES: not self._host.own.has_pages,
            ONLY_OIDC: self._accepted != {"oidc"},
            BOUND: fields.binding is Binding.UNBOUND,
            NO_WEB_MAIL: fields.pageByMail,
            BY_DIRECTORY: fields.userIs is not UserIs.DIRECTORY_ID,
        }
        return next((text for text, applies in problems.items() if applies), "")

    @property
    def strongest(self) -> Strength:
        """The highest strength that an answer can have with this configuration."""
        return self._strongest_of(self._accepted)

    @property
    def _on_pages(self) -> frozenset[str]:
        """The factors that people prove on pages. There are none if the domain accepts only codes."""
        return self._accepted if self._host.own.has_pages and self._accepted - TYPED else frozenset()

    @property
    def _without_page(self) -> frozenset[str]:
        """The factors for which no page is opened. A code of an app is stronger on a page with digits."""
        return frozenset({"bypass"}) if self._fields.binding is Binding.CODE else TYPED

    def _strongest_of(self, factors: frozenset[str]) -> Strength:
        proved = factors & self._on_pages
        resistant = {"passkey", "oidc"} if self._fields.resistantAmr else {"passkey"}
        if self._fields.binding is Binding.ADDRESS and proved & resistant:
            return Strength.PHISHING_RESISTANT
        in_two_channels = self._fields.binding is Binding.CODE and proved - WEAK
        return Strength.TWO_CHANNELS if in_two_channels else Strength.ANY

    @staticmethod
    async def refuse(fields: Fields, host: Host) -> None:
        """Raise Conflict or Invalid if the service cannot do what a configuration demands, or if no device of the
        domain can."""
        assert isinstance(fields, OwnFields)  # noqa: S101  the caller made it with `fields`
        factors = set(fields.factors.split(","))
        if not factors <= TYPED:
            if not host.own.has_pages:
                raise Conflict(NO_PAGES)
            if missing := factors - host.own.offered:
                known = ", ".join(each for each in FACTORS if each in host.own.offered)
                raise invalid_field("factors", f"this service does not have {min(missing)}, only: {known}")
            if host.own.address_length > MAX_ADDRESS:
                raise invalid_field(
                    "factors",
                    f"the address of a page would have {host.own.address_length} characters, and devices show at most "
                    f"{MAX_ADDRESS}: give public_url a shorter host",
                )
            if fields.pageByMail and (not host.own.has_mail or fields.binding is Binding.CODE):
                raise invalid_field("pageByMail", NO_MAIL)
            products = await host.products()
            if is_impossible(products, fields.binding, has_mail=fields.pageByMail):
                raise invalid_field("binding", _impossible(products, fields.binding))

        if fields.enrolByChallenge and (problem := _no_links(host, factors)):
            raise invalid_field("enrolByChallenge", problem)
        if "oidc" in factors:
            for name in ("issuer", "clientId", "clientSecret"):
                if not getattr(fields, name):
                    raise invalid_field(name, "is missing: the factor oidc needs issuer, clientId and clientSecret")

    async def enrolled(self, user: str) -> Enrolled:
        """Return whether the person has one of the accepted factors, and how strong it can be."""
        factors = await self._factors(user)
        enrolment = Enrolment.ENROLLED if factors else Enrolment.NOT_ENROLLED
        return Enrolled(enrolment, self._strongest_of(factors))

    async def _unable(self) -> str:
        """Return which products of the domain cannot have the binding, as part of a text."""
        products = await self._host.products() if self._on_pages else ()
        found = unable(products, self._fields.binding, has_mail=self._mails)
        return f"; not possible with {', '.join(found)}" if found else ""

    async def check(self) -> str:
        """Return a text with the factors, the binding, and whether there are pages. Raises ProviderError if the
        identity provider cannot be used."""
        pages = "people prove a factor on pages of this service" if self._on_pages else "the pages of people are off"
        servers = "no server is asked"
        if "oidc" in self._on_pages:
            servers = await self._host.own.check("oidc", self._host.domain_id)
        binding = f"{self._fields.binding}{await self._unable()}"
        return f"{self._fields.factors} with binding {binding}; {pages}; {servers}"

    async def start(self, question: Question) -> Answer:
        """Open a page for the login, or ask for a code if the person has only codes."""
        if not question.is_checked and (problem := self.web_problem):
            return Answer(Outcome.DENIED, detail=problem)
        return await self._start(question)

    async def _start(self, question: Question) -> Answer:
        factors = await self._factors(question.user)
        if not factors:
            return await self._offer_link(question)
        is_typed = question.takes_codes and question.shows_challenges
        if not factors & self._on_pages - self._without_page and (is_typed or not self._mails):
            return Answer(Outcome.CODE)
        # Logins that do not answer must not close a device for the others, so a challenge is tried in any case.
        if self._fields.binding is Binding.CODE and not question.takes_codes:
            return Answer(Outcome.NOT_RETURNED, detail="nothing can be typed at this device")
        if self._fields.binding is Binding.ADDRESS and not self._host.own.can_compare(question.address):
            return Answer(Outcome.UNBOUND, detail=_unbound(question))
        if self._mails and not is_typed:
            return await self._mail(question)
        return await self._ask(question, factors)

    async def _offer_link(self, question: Question) -> Answer:
        """Show an enrolment link to a person without a factor, if the domain and the device can."""
        shows = self.shows_links and question.takes_codes and question.is_checked
        address = await self._host.enrolments.offer(question) if shows else None
        if address is None:
            return Answer(Outcome.NOT_ENROLLED)
        text = f"You have no second factor. Add one at {address} within 10 minutes, then press Enter or log in again"
        return Answer(Outcome.CODE, handle=ENROL, text=text, detail="the challenge has shown an enrolment link")

    async def _mail(self, question: Question) -> Answer:
        """Open a page, and send its address by mail once. The login waits at its device."""
        page = await self._host.own.open(question, self._fields)
        if page is None:
            return await self._no_page(question)
        if not await self._host.own.mail(question, page):
            await self._host.own.end(question.challenge_id)
            return Answer(Outcome.DENIED, detail="the device shows no challenge, and the user gets no mail")
        return Answer(Outcome.WAITING, handle=question.challenge_id, again_s=0.0)

    async def _ask(self, question: Question, factors: frozenset[str], before: str = "") -> Answer:
        page = await self._host.own.open(question, self._fields)
        if page is None:
            return await self._no_page(question, factors)
        return Answer(Outcome.CODE, handle=question.challenge_id, text=before + self._text(page, factors))

    async def _no_page(self, question: Question, factors: frozenset[str] = frozenset()) -> Answer:
        """Return the answer to a login that gets no page. During a pause, a person with codes can type one."""
        pause = await self._host.own.paused(question.domain_id, question.user)
        return Answer(Outcome.CODE) if pause and factors & TYPED else Answer(Outcome.TOO_MANY, detail=pause)

    def _text(self, page: Opened, factors: frozenset[str]) -> str:
        where = f"Open {page.address} (or enter {page.code} at {page.site})"
        then = "type its digits here" if self._fields.binding is Binding.CODE else "press Enter here"
        codes = ". Or type a code of your app" if "totp" in factors else ""
        return f"{where}, then {then}{codes}"

    async def poll(self, handle: str) -> Answer:
        """Wait for the proof of a login that waits at its device."""
        state, _ = await self._host.own.state_of(handle, within_s=PATIENCE_S)
        if state is StepUpState.OPEN:
            return Answer(Outcome.WAITING, handle=handle, again_s=0.0)
        return await self._approve(handle)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check what the user has typed: digits of the page, a code, or nothing."""
        factors = await self._factors(question.user)
        if handle == ENROL:
            return await self.start(question) if factors else Answer(Outcome.NOT_ENROLLED)
        if not handle:
            proved = await self._factor_of(question, code, factors)
            return _approved(proved, Strength.ANY) if proved else Answer(Outcome.WRONG_CODE)
        state, _ = await self._host.own.state_of(handle, within_s=0)
        if state in _ENDED:
            return _ENDED[state]
        if not _is_typed(code):
            return await self._look(question, factors, handle)
        return await self._check_typed(question, code, factors, state)

    async def _check_typed(self, question: Question, code: Code, factors: frozenset[str], state: StepUpState) -> Answer:
        """Check digits or a code. They are counted before the check, so that simultaneous guesses count too."""
        own, handle = self._host.own, question.challenge_id
        if await own.take_answer(handle):
            if await own.check_digits(handle, code):
                return await self._approve(handle)
            if proved := await self._factor_of(question, code, factors):
                await own.end(handle)
                return _approved(proved, Strength.ANY)
        if not await own.answer_was_wrong(handle):
            return _ENDED[StepUpState.WRONG]
        if state is not StepUpState.OPEN:
            return Answer(Outcome.WRONG_CODE, handle, f"Wrong. {ENTER_DIGITS}")
        asked = await self._ask(question, factors, "Wrong. ")
        return replace(asked, outcome=Outcome.WRONG_CODE) if asked.outcome is Outcome.CODE else asked

    async def _look(self, question: Question, factors: frozenset[str], handle: str) -> Answer:
        """Return whether the person has proved a factor, after a short wait."""
        state, _ = await self._host.own.state_of(handle, within_s=self.empty_s)
        if state is StepUpState.OPEN:
            return await self._ask(question, factors)
        if state is StepUpState.PROVEN and self._fields.binding is Binding.CODE:
            return Answer(Outcome.CODE, handle, ENTER_DIGITS)
        return await self._approve(handle)

    async def _approve(self, handle: str) -> Answer:
        """Use the proof of a login. After this, the person cannot deny the login on the page."""
        state = await self._host.own.use(handle)
        if state is not StepUpState.USED:
            return _ENDED.get(state, Answer(Outcome.DENIED))
        return _approved(*await self._host.own.proof_of(handle))

    async def cancel(self, handle: str) -> None:
        """End the step-up, so that its page takes no proof any more."""
        await self._host.own.end(handle)

    async def aclose(self) -> None:
        """Do nothing, because there are no connections."""

    async def _factors(self, user: str) -> frozenset[str]:
        """Return the accepted factors that a person has, and that can be proved with the present settings."""
        usable = self._accepted if self._host.own.has_pages else self._accepted & TYPED
        return usable & await self._host.own.factors_of(self._host.domain_id, user)

    async def _factor_of(self, question: Question, code: Code, factors: frozenset[str]) -> str:
        """Return the factor that a typed code proves, or an empty text if the code is wrong."""
        if "totp" in factors and (await self._totp.verify(question, code, "")).outcome is Outcome.APPROVED:
            return "totp"
        own, domain_id = self._host.own, question.domain_id
        is_bypass = "bypass" in factors and await own.spend_code("bypass", domain_id, question.user, code)
        return "bypass" if is_bypass else ""


def _approved(factor: str, strength: Strength) -> Answer:
    """Return the answer for a proved factor, which the event of the login names."""
    return Answer(Outcome.APPROVED, strength=strength, detail=f"{_PROVED.get(factor, factor)}, {strength}")


def _is_typed(code: Code) -> bool:
    """Return whether an answer to a challenge has digits. People also type `ok` or a blank before Enter."""
    if code.text is None:
        return not code.matches("")
    return any(each.isdigit() for each in code.text)


def _impossible(products: Sequence[str], binding: Binding) -> str:
    needs = {
        Binding.CODE: "a device that shows a challenge",
        Binding.ADDRESS: "a device that shows a challenge and sends the address of the station",
        Binding.UNBOUND: "a device that shows a challenge",
    }
    return f"{binding} needs {needs[binding]}; the devices of the domain do not: {', '.join(sorted(products))}"


def _no_links(host: Host, factors: Set[str]) -> str:
    """Return why no challenge can show an enrolment link, or an empty text."""
    if not host.own.has_pages:
        return f"must be false: {NO_PAGES}"
    if not factors & ADDED:
        return f"needs one of the factors that people add by a link: {', '.join(sorted(ADDED))}"
    if "oidc" in factors:
        return "must be false with the factor oidc, which all people of the domain have"
    if host.enrolments.address_length > MAX_ADDRESS:
        length = host.enrolments.address_length
        return f"a link would have {length} characters, and devices show at most {MAX_ADDRESS}: shorten public_url"
    return ""


def _unbound(question: Question) -> str:
    if not question.signed:
        return "the request has no Message-Authenticator, so its address is only a claim"
    if not question.address:
        return "the request has no IP address of the station"
    return f"{question.address} is not a global address, so it cannot be compared"
