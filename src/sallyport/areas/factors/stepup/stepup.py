"""A step-up, its code, and what its page shows."""

from dataclasses import dataclass, field
from typing import Final

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.fields import Binding, OwnFields
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Question, Strength
from sallyport.base.clock import SECOND
from sallyport.base.text import fold
from sallyport.store.vault import Vault

LIFE_US: Final = 120 * SECOND
"""Longest time for which a code opens its page, in microseconds."""
KEPT_US: Final = 300 * SECOND
"""Time for which a step-up is kept after its end, in microseconds. It exceeds the lifetime of a challenge."""
ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""The characters of codes: digits and capital letters without look-alikes."""
CODE_LENGTH: Final = 10
MAX_TYPED: Final = 40
"""Maximum length of a typed code with its separators, in characters."""
MAX_OPEN: Final = 2
"""Maximum number of open step-ups of a person."""
MAX_WRONG: Final = 3
"""Number of wrong digits, and of wrong proofs, that ends a login."""
MAX_CODE_MAILS: Final = 2
"""Maximum number of mails with a code for one login."""
MAX_MAILS_OF_PERSON: Final = 6
"""Maximum number of mails about the kept step-ups of a person: in about seven minutes."""
_SEPARATORS: Final = str.maketrans("", "", " -.\u00a0\u2010\u2011\u2013")


OTHER_ADDRESS: Final = (
    "This browser does not have the address of the device that logs in. If you are logging in, open the page on that "
    "device, and without a proxy or another VPN."
)
UNKNOWN: Final = "This request for a second factor is over, or it was never here. Start the login again."
NOT_ACCEPTED: Final = "This factor is not accepted for this login."
PROBLEMS: Final = {
    State.PROVEN: "The proof is given. You can return to your device.",
    State.USED: "The login has continued. You can close this page.",
    State.DENIED: "You have said that this login is not yours. It is refused.",
    State.UNBOUND: "The login is refused: the proof came from another address than the login.",
    State.WRONG: "The login is refused: too many attempts were wrong. Start the login again.",
    State.OVER: "The login is over. Start it again.",
}


@dataclass(frozen=True, slots=True)
class StepUp:
    """A step-up as it is stored, see the schema. is_checked: whether the login has passed a first factor. tenant_id:
    the tenant of the domain. Times are in microseconds."""

    id: str
    domain_id: int
    user_key: str
    user_name: str
    code_hash: str = field(repr=False)
    device: str
    place: str
    source: str
    station: str
    address: str
    binding: Binding
    factors: tuple[str, ...]
    digits: int
    state: State
    factor: str
    strength: Strength
    browser_hash: str = field(repr=False)
    wrong_digits: int
    wrong_proofs: int
    page_mails: int
    code_mails: int
    opened_at: int
    expires_at: int
    is_checked: bool = True
    tenant_id: int = 0

    @property
    def person(self) -> Person:
        """The person that logs in."""
        return Person(self.domain_id, self.user_name)

    def is_open(self, now: int) -> bool:
        """Return whether a proof can be accepted. now: the time in microseconds."""
        return self.state is State.OPEN and self.expires_at > now

    def seen_as(self, now: int) -> State:
        """Return the state, in which a step-up that has expired without a proof is over."""
        return State.OVER if self.state is State.OPEN and self.expires_at <= now else self.state


@dataclass(frozen=True, slots=True)
class Shown:
    """A step-up as its page shows it to the browser that has opened it.

    user: the name of the person that logs in. device, place, source: the name of the NAS, the tag of its place or the
    name of its RADIUS client, and its address. address: the address of the station, or its Calling-Station-Id, or
    empty. factors: the factors with which the person can prove now, in the order of `mfa.fields.FACTORS`. state: OPEN
    if a proof is wanted. digits: the digits to type at the prompt of the device, if the person has given the proof and
    the binding is `code`. problem: a sentence that says why no proof is wanted, or empty. code_mails: the number of
    mails with a code that were sent. is_checked: whether the login has passed a first factor. Times are in
    microseconds. All texts but `problem` may come from packets.
    """

    id: str
    tenant_id: int
    domain_id: int
    user: str
    device: str
    place: str
    source: str
    address: str
    binding: Binding
    factors: tuple[str, ...]
    state: State
    digits: str
    problem: str
    opened_at: int
    expires_at: int
    code_mails: int = 0
    is_checked: bool = True

    @property
    def person(self) -> Person:
        """The person that logs in."""
        return Person(self.domain_id, self.user)


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of a proof. accepted: whether the login may continue. text: a sentence for the page. digits: the
    digits to type at the prompt of the device, or empty. strength: the strength of the proof for this login."""

    accepted: bool
    text: str
    digits: str = ""
    strength: Strength = Strength.ANY


class Codes:
    """The codes and digits of step-ups. They are derived from the id of the login with the master key, so the store
    does not contain them, and a repeated request for the same login has the same ones."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def code(self, stepup_id: str) -> str:
        """Return the code that opens the page: about 50 bits of a keyed hash."""
        number, code = int(self._vault.digest(stepup_id.encode(), "stepups/address"), 16), ""
        for _ in range(CODE_LENGTH):
            number, place = divmod(number, len(ALPHABET))
            code += ALPHABET[place]
        return code

    def hash(self, code: str) -> str:
        """Return the keyed hash of a code, by which the store finds the step-up."""
        return self._vault.digest(code.encode(), "stepups/code")

    def digits(self, stepup: StepUp) -> str:
        """Return the digits to type at the prompt of the device."""
        number = int(self._vault.digest(stepup.id.encode(), "stepups/digits"), 16)
        return f"{number % 10**stepup.digits:0{stepup.digits}}"


def new_stepup(question: Question, fields: OwnFields, code_hash: str, now: int) -> StepUp:
    """Return an open step-up for a login. now: the time in microseconds."""
    return StepUp(
        id=question.challenge_id,
        domain_id=question.domain_id,
        user_key=fold(question.user),
        user_name=question.user,
        code_hash=code_hash,
        device=question.device,
        place=question.place,
        source=question.source,
        station=question.station,
        address=question.address,
        binding=fields.binding,
        factors=tuple(fields.factors.split(",")),
        digits=fields.digits,
        state=State.OPEN,
        factor="",
        strength=Strength.ANY,
        browser_hash="",
        wrong_digits=0,
        wrong_proofs=0,
        page_mails=0,
        code_mails=0,
        opened_at=now,
        expires_at=min(question.expires_at, now + LIFE_US),
        is_checked=question.is_checked,
    )


def plain(code: str) -> str:
    """Return a code as it was made, from a code as a person types it. Return an empty text if it cannot be a code."""
    typed = code.translate(_SEPARATORS) if len(code) <= MAX_TYPED else ""
    if not typed.isascii():  # some other letters have an ASCII capital letter
        return ""
    typed = typed.upper()
    return typed if len(typed) == CODE_LENGTH and all(each in ALPHABET for each in typed) else ""


def typed_form(code: str) -> str:
    """Return a code in two groups, as a person reads and types it."""
    half = CODE_LENGTH // 2
    return f"{code[:half]}-{code[half:]}"


def bound_strength(strength: Strength, binding: Binding) -> Strength:
    """Return the strength of a proof with its binding to the login.

    The attacker's own browser has the address of the attacker's station. So the address makes a proof stronger only if
    the proof cannot be relayed.
    """
    if binding is Binding.CODE:
        return min(strength, Strength.TWO_CHANNELS)
    if binding is Binding.ADDRESS and strength is Strength.PHISHING_RESISTANT:
        return strength
    return Strength.ANY
