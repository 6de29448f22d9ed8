"""The step-ups of all domains, as their pages and the provider `own` use them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import structlog
import trio

from sallyport.areas.factors.denials import Denial, Denials, DeniedAt
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.stepup import repo
from sallyport.areas.factors.stepup.addresses import GLOBAL, GlobalNetworks, Sameness
from sallyport.areas.factors.stepup.changes import Changes
from sallyport.areas.factors.stepup.limits import CodeGuesses, LockOuts
from sallyport.areas.factors.stepup.mailing import PageMail
from sallyport.areas.factors.stepup.openings import Openings
from sallyport.areas.factors.stepup.stepup import (
    CODE_LENGTH,
    NOT_ACCEPTED,
    OTHER_ADDRESS,
    PROBLEMS,
    UNKNOWN,
    Codes,
    Proof,
    Shown,
    StepUp,
    bound_strength,
    new_stepup,
    plain,
    typed_form,
)
from sallyport.areas.mfa.fields import FACTORS, Binding, OwnFields
from sallyport.areas.mfa.host import Opened
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Code, Question, Strength
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, StoreError, TooMany
from sallyport.base.secret import token_hash
from sallyport.base.text import fold
from sallyport.metrics import StepUpMetrics
from sallyport.nodes.notices import Notices
from sallyport.outgoing.mail import Mail
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault

PATH: Final = "/mfa"
"""The path of the page at which a person types a code. The page of a code is below it."""
PURGE_S: Final = 60.0
TOO_MANY_GUESSES: Final = "too many wrong codes: wait a minute, and try again"
LOCKED: Final = "too many failures: wait some minutes"
HasFactor = Callable[[Person], Awaitable[bool]]
SpendCode = Callable[[Person, Code], Awaitable[bool]]
CheckFactor = Callable[[int], Awaitable[str]]

log = structlog.get_logger()


class StepUps:
    """The step-ups of all domains.

    site: the base URL of the pages, such as `https://vpn.example.org`, or empty if the service has no pages. networks:
    the networks whose addresses are compared. The pages pass `browser`, the secret in the cookie of the browser.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        notices: Notices,
        denials: Denials,
        metrics: StepUpMetrics,
        site: str,
        clock: Clock = now_us,
        networks: GlobalNetworks = GLOBAL,
        mail: Mail | None = None,
    ) -> None:
        self._store = store
        self._codes = Codes(vault)
        self._changes = Changes(notices)
        self._site = site.rstrip("/")
        self._clock = clock
        self._networks = networks
        self._metrics = metrics
        self._mail = PageMail(store, mail)
        self._factors: dict[str, HasFactor] = {}
        self._spend: dict[str, SpendCode] = {}
        self._checks: dict[str, CheckFactor] = {}
        self._denials = denials
        self._denied: dict[tuple[int, str], list[str]] = {}
        denials.on_denial(self._end_all, self._tell_all)
        self._openings = Openings(store, denials.pauses, clock)
        self._guesses = CodeGuesses(notices, metrics, clock)
        self._lock_outs: LockOuts | None = None

    # --- what other parts add --------------------------------------------------------------------------------------

    def offer(self, factor: str, has: HasFactor, check: CheckFactor | None = None) -> None:
        """Register a factor that pages can prove. factor: one of `mfa.fields.FACTORS`. has: returns whether a person
        has this factor now. check: see `check`."""
        self._factors[factor] = has
        if check is not None:
            self._checks[factor] = check

    def accept_codes(self, factor: str, spend: SpendCode) -> None:
        """Register a factor whose codes a person may also type at the prompt of a device. spend: returns whether a code
        is right, and makes it invalid."""
        self._spend[factor] = spend

    def lock_by(self, lock_outs: LockOuts) -> None:
        """Count the wrong codes of pages for the lock-outs of people."""
        self._lock_outs = lock_outs

    # --- for the pages ---------------------------------------------------------------------------------------------

    async def opened(self, code: str, browser: str, source: str) -> Shown | None:
        """Bind the step-up of a code to the first browser that sends the code by POST, and return it.

        Return None for a code that is unknown, over, or bound to another browser: the page shows the same for all of
        them. A step-up that demands another address than that of the browser is shown with its problem, and stays
        unbound. code: as it was typed. source: the address of the browser. Raises TooMany after many wrong codes,
        unless this browser has opened the page before. Raises StoreError.
        """
        now, typed, browser_hash = self._clock(), plain(code), token_hash(browser)
        if self._guesses.refuses(source):
            stepup = await self._of_code(typed)
            if stepup is None or stepup.browser_hash != browser_hash:
                raise TooMany(TOO_MANY_GUESSES)
            return await self._shown(stepup, now)
        found = await self._bound(typed, browser_hash, source, now)
        if found is None:
            self._guesses.fail(source)
        return found

    async def _bound(self, code: str, browser_hash: str, source: str, now: int) -> Shown | None:
        stepup = await self._of_code(code)
        if stepup is None or stepup.browser_hash not in ("", browser_hash):
            return None
        if not stepup.browser_hash:
            if not stepup.is_open(now):
                return None
            if self._sameness(stepup, source) is not Sameness.EQUAL:
                return replace(await self._shown(stepup, now), factors=(), problem=OTHER_ADDRESS)
            if not await self._store.write(lambda tx: repo.bind(tx, stepup.id, browser_hash, now)):
                return None  # another browser was faster
        return await self._shown(stepup, now)

    async def _of_code(self, code: str) -> StepUp | None:
        """Return the step-up of a code, or None. code: as `plain` returns it."""
        hashed = self._codes.hash(code)
        return await self._store.read(lambda tx: repo.find_by_code(tx, hashed)) if code else None

    async def shown(self, stepup_id: str, browser: str) -> Shown | None:
        """Return the step-up that this browser has opened, or None. Raises StoreError."""
        stepup = await self._of_browser(stepup_id, browser)
        return None if stepup is None else await self._shown(stepup, self._clock())

    async def prove(self, stepup_id: str, browser: str, factor: str, strength: Strength, address: str) -> Proof:
        """Accept a proof that the page has checked, and let the login continue. Raises StoreError.

        factor: one of `mfa.fields.FACTORS`. strength: the strength of the proof by itself: PHISHING_RESISTANT of a
        passkey, TWO_CHANNELS of another proof, ANY of a bypass code. address: the address of the browser.
        """
        now, stepup = self._clock(), await self._of_browser(stepup_id, browser)
        if stepup is None:
            return Proof(accepted=False, text=UNKNOWN)
        if problem := await self._problem(stepup, factor, address, now):
            return Proof(accepted=False, text=problem)
        reached = bound_strength(strength, stepup.binding)
        browser_hash = stepup.browser_hash
        if not await self._store.write(lambda tx: repo.prove(tx, stepup.id, browser_hash, factor, reached, now)):
            again = await self.shown(stepup_id, browser)
            return Proof(accepted=False, text=UNKNOWN if again is None else again.problem)
        self._changes.tell(stepup.id)
        self._metrics.proved(factor, reached)
        log.info("stepup_proven", domain_id=stepup.domain_id, factor=factor, strength=reached.value)
        if stepup.binding is Binding.CODE:
            text = "Type these digits at the prompt of your device."
            return Proof(accepted=True, text=text, digits=self._codes.digits(stepup), strength=reached)
        return Proof(accepted=True, text=PROBLEMS[State.PROVEN], strength=reached)

    async def _problem(self, stepup: StepUp, factor: str, address: str, now: int) -> str:
        """Return why a proof is not accepted, or an empty text. A proof from another address ends the step-up."""
        if not stepup.is_open(now):
            return PROBLEMS[stepup.seen_as(now)]
        if factor not in stepup.factors:
            return NOT_ACCEPTED
        if self._sameness(stepup, address) is not Sameness.EQUAL:
            await self._end(stepup.id, State.UNBOUND)
            return PROBLEMS[State.UNBOUND]
        return ""

    async def take_try(self, stepup_id: str, browser: str) -> bool:
        """Count a try to prove with a typed code, before the code is checked: simultaneous guesses, at any nodes, are
        MAX_WRONG together. Return False if none is left, or if no proof is wanted. Raises Conflict if the person is
        locked out."""
        hashed, now = token_hash(browser), self._clock()
        stepup = await self._of_browser(stepup_id, browser)
        if stepup is not None and self._lock_outs is not None and self._lock_outs.is_locked(stepup.person):
            raise Conflict(LOCKED)
        return await self._store.write(lambda tx: repo.take_try(tx, stepup_id, hashed, now))

    async def failed(self, stepup_id: str, browser: str) -> int:
        """Note that the code of a try was wrong, and count it for the person's lock-out: an attacker could start many
        logins, and guess some codes on the page of each. Return how many tries are left. The last one ends the
        login."""
        stepup = await self._of_browser(stepup_id, browser)
        if stepup is None:
            return 0
        if self._lock_outs is not None:
            await self._lock_outs.count_wrong_code(stepup.person)
        left = await self._store.write(lambda tx: repo.end_without_tries(tx, stepup.id))
        if not left:
            self._changes.tell(stepup_id)
        return left

    async def deny(self, stepup_id: str, browser: str) -> Shown | None:
        """Refuse the login of another person ("This is not me"). Return the step-up, or None if another
        browser has opened it. Raises StoreError.

        All open step-ups of the person end (`Denials`). This happens even if the login has continued or expired
        already, because another person knows the password. It does not bind the step-up: the caller has checked its
        code, and a person at another address than the login must be able to deny it.

        If nobody has checked a password, everybody who knows the name could deny a login of the person. So only this
        login ends, unless the person has confirmed it by a sign-in at the identity provider.
        """
        stepup = await self._find(stepup_id)
        if stepup is None or stepup.browser_hash not in ("", token_hash(browser)):
            return None
        if not stepup.is_checked:
            await self._end(stepup.id, State.DENIED)
            stepup = await self._find(stepup_id) or stepup
        # the sign-in at the identity provider has confirmed the person of a login that has continued
        is_checked = stepup.is_checked or stepup.state is State.USED
        await self._denials.deny(Denial(stepup.domain_id, stepup.user_name, DeniedAt.PAGE, is_checked))
        denied = await self._find(stepup_id)
        return None if denied is None else await self._shown(denied, self._clock())

    def _end_all(self, tx: Tx, denial: Denial) -> None:
        """End all open step-ups of a person, in the transaction of a denial. This runs in a worker thread."""
        key = fold(denial.user)
        self._denied[denial.domain_id, key] = repo.end_all(tx, denial.domain_id, key, State.DENIED)

    def _tell_all(self, denial: Denial) -> None:
        """Wake the logins of a person after the commit of a denial."""
        for stepup_id in self._denied.pop((denial.domain_id, fold(denial.user)), ()):
            self._changes.tell(stepup_id)

    async def _of_browser(self, stepup_id: str, browser: str) -> StepUp | None:
        stepup = await self._find(stepup_id)
        return stepup if stepup is not None and stepup.browser_hash == token_hash(browser) else None

    async def _find(self, stepup_id: str) -> StepUp | None:
        return await self._store.read(lambda tx: repo.find(tx, stepup_id))

    async def _shown(self, stepup: StepUp, now: int) -> Shown:
        state = stepup.seen_as(now)
        has = await self.factors_of(stepup.domain_id, stepup.user_name) if state is State.OPEN else ()
        has_digits = state is State.PROVEN and stepup.binding is Binding.CODE
        return Shown(
            stepup.id,
            stepup.tenant_id,
            stepup.domain_id,
            stepup.user_name,
            stepup.device,
            stepup.place,
            stepup.source,
            stepup.address or stepup.station,
            stepup.binding,
            tuple(each for each in FACTORS if each in has and each in stepup.factors),
            state,
            self._codes.digits(stepup) if has_digits else "",
            PROBLEMS.get(state, ""),
            stepup.opened_at,
            stepup.expires_at,
            stepup.code_mails,
            stepup.is_checked,
        )

    def _sameness(self, stepup: StepUp, browser: str) -> Sameness:
        """Compare the address of a browser with that of the station. EQUAL if the binding does not demand it."""
        return self._networks.compare(stepup.address, browser) if stepup.binding is Binding.ADDRESS else Sameness.EQUAL

    async def take_mail(self, stepup_id: str, browser: str) -> bool:
        """Count a mail with a code, before it is sent. Return False if the login, or the person, had too many."""
        hashed = token_hash(browser)
        return await self._store.write(lambda tx: repo.take_mail(tx, stepup_id, hashed))

    # --- for the provider `own` (implements `mfa.host.StepUpRequests`) ---------------------------------------------

    @property
    def has_pages(self) -> bool:
        """Whether the service has the pages on which people prove a factor."""
        return bool(self._site)

    @property
    def has_mail(self) -> bool:
        """Whether pages can be brought by mail, while a login waits at its device."""
        return self._mail.is_on

    @property
    def offered(self) -> frozenset[str]:
        """The names of the factors that the service can check."""
        return frozenset(self._factors)

    async def check(self, factor: str, domain_id: int) -> str:
        """Test the server of a factor, see `mfa.host.StepUpRequests`."""
        return await self._checks[factor](domain_id)

    @property
    def address_length(self) -> int:
        """The length of the address of a page."""
        return len(f"{self._site}{PATH}/") + CODE_LENGTH

    def can_compare(self, address: str) -> bool:
        """Return whether an address is global, so that the address of a browser can be compared with it."""
        return self._networks.is_known(address)

    async def factors_of(self, domain_id: int, user: str) -> frozenset[str]:
        """Return the names of the factors that a person has now."""
        person = Person(domain_id, user)
        return frozenset([name for name, has in self._factors.items() if await has(person)])

    async def open(self, question: Question, fields: OwnFields) -> Opened | None:
        """Open a step-up for a login, see `mfa.host.StepUpRequests`."""
        now, code = self._clock(), self._codes.code(question.challenge_id)
        new = new_stepup(question, fields, self._codes.hash(code), now)

        if not await self._openings.open(new):
            return None
        site = f"{self._site.removeprefix('https://')}{PATH}"
        return Opened(f"{self._site}{PATH}/{code}", typed_form(code), site)

    async def paused(self, domain_id: int, user: str) -> str:
        """Return until when a person gets no page, see `mfa.host.StepUpRequests`."""
        return await self._openings.paused(domain_id, user)

    async def mail(self, question: Question, page: Opened) -> bool:
        """Send the address of a page to the person by mail, see `mfa.host.StepUpRequests`."""
        stepup = await self._find(question.challenge_id)
        return stepup is not None and await self._mail.send(stepup, page.address)

    async def state_of(self, stepup_id: str, *, within_s: float) -> tuple[State, Strength]:
        """Wait until a step-up is not open, at most `within_s` seconds, see `mfa.host.StepUpRequests`."""
        with self._changes.waiting(stepup_id) as answered:
            standing = await self._standing(stepup_id)
            if standing[0] is State.OPEN and within_s > 0:
                with trio.move_on_after(within_s):
                    await answered.wait()
                standing = await self._standing(stepup_id)
        return standing

    async def _standing(self, stepup_id: str) -> tuple[State, Strength]:
        stepup = await self._find(stepup_id)
        return (State.OVER, Strength.ANY) if stepup is None else (stepup.seen_as(self._clock()), stepup.strength)

    async def use(self, stepup_id: str) -> State:
        """Mark a proof as used by its login. Return USED, or the state that forbids it."""
        if await self._openings.use(stepup_id):
            return State.USED
        return (await self._standing(stepup_id))[0]

    async def proof_of(self, stepup_id: str) -> tuple[str, Strength]:
        """Return the factor that was proved, and the strength of the proof."""
        stepup = await self._find(stepup_id)
        return ("", Strength.ANY) if stepup is None else (stepup.factor, stepup.strength)

    async def check_digits(self, stepup_id: str, code: Code) -> bool:
        """Return whether a user has typed the digits that the page shows. False if it shows none."""
        stepup = await self._find(stepup_id)
        if stepup is None or stepup.binding is not Binding.CODE or stepup.state not in (State.PROVEN, State.USED):
            return False
        return code.matches(self._codes.digits(stepup))

    async def take_answer(self, stepup_id: str) -> bool:
        """Count a typed answer before it is checked. Return False if the login may not type another one."""
        return await self._store.write(lambda tx: repo.take_answer(tx, stepup_id))

    async def answer_was_wrong(self, stepup_id: str) -> int:
        """Note that the answer of a try was wrong. Return how many are left. The last one ends the step-up."""
        left = await self._store.write(lambda tx: repo.end_without_answers(tx, stepup_id))
        if not left:
            self._changes.tell(stepup_id)
        return left

    async def spend_code(self, factor: str, domain_id: int, user: str, code: Code) -> bool:
        """Return whether a user has typed a right code of a factor, and make it invalid. False for other factors."""
        spend = self._spend.get(factor)
        return spend is not None and await spend(Person(domain_id, user), code)

    async def end(self, stepup_id: str) -> None:
        """End a step-up whose login has ended."""
        await self._end(stepup_id, State.OVER)

    async def _end(self, stepup_id: str, state: State) -> None:
        if await self._store.write(lambda tx: repo.end(tx, stepup_id, state)):
            self._changes.tell(stepup_id)

    async def purge(self) -> None:
        """Delete step-ups that ended long ago, until cancelled."""
        while True:
            await trio.sleep(PURGE_S)
            try:
                await self.delete_old()
            except StoreError as error:
                log.debug("stepups_not_purged", error=str(error))

    async def delete_old(self) -> None:
        """Delete all step-ups that ended long ago, in short transactions. Raises StoreError."""
        now = self._clock()
        while await self._store.write(lambda tx: repo.purge(tx, now)):
            pass
