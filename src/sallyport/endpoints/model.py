"""What an endpoint user is, in the service and in the interface."""

from dataclasses import dataclass

from pydantic import model_validator

from sallyport.base.errors import Invalid
from sallyport.base.model import Model
from sallyport.base.text import fold
from sallyport.base.validation import unfit
from sallyport.radius.mschap import NtKey, nt_hash
from sallyport.web.scope import Id, OfDomain, Text

MAX_NAME = 253
MAX_PASSWORD = 128
NO_USER = "user not found"
USER_NAME = f"1 to {MAX_NAME} octets, all of them printable, without blanks at the ends"
"""What a user's name is."""


class User:
    """A user as the login path sees it.

    passwords: the octets that are right: as given, and in Latin-1 for devices that send that; empty where the user
    has no password. has_totp: whether the user has a confirmed one-time-password seed. groups: the names, without
    case, of the groups that the user is in and that are active. session_s: how long a session may last, where these
    say so. stamp: another after each change of the password.
    """

    __slots__ = ("_nt_key", "groups", "has_totp", "id", "name", "passwords", "session_s", "stamp")

    def __init__(
        self,
        user_id: int,
        name: str,
        password: bytes | None,
        *,
        has_totp: bool = False,
        groups: frozenset[str] = frozenset(),
        session_s: int | None = None,
        stamp: str = "",
    ) -> None:
        self.id = user_id
        self.name = name
        self.passwords = () if password is None else _spellings(password)
        self.has_totp = has_totp
        self.groups = groups
        self.session_s = session_s
        self.stamp = stamp
        self._nt_key: NtKey | None = None

    @property
    def nt_key(self) -> NtKey | None:
        """What MS-CHAP checks the password by, made when it is first asked for; None where the user has none."""
        if self._nt_key is None and self.passwords:
            self._nt_key = NtKey(nt_hash(self.passwords[0]))  # in UTF-8: it hashes characters, not octets
        return self._nt_key


UserKey = int | str
"""A user of a domain by id, or by name."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whose seed it is."""

    id: int
    domain_id: int
    name: str


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A seed that waits for its first right code.

    seed: base32. otpauth: the URI that an authenticator app takes. left: wrong codes that it still stands. expires_at:
    microseconds, UTC.
    """

    person: Person
    seed: str
    otpauth: str
    left: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a code. left: wrong codes that the enrolment still stands; 0: it has ended."""

    right: bool
    left: int = 0


class OfUser(OfDomain):
    """A body that names one user of a domain: by userId, else by userName."""

    userId: Id | None = None
    userName: Text = ""

    @model_validator(mode="after")
    def _names_somebody(self) -> "OfUser":
        if self.userId is None and not self.userName:
            raise unfit("userId or userName is needed", "userId", "userName")
        return self

    @property
    def which(self) -> UserKey:
        """The user."""
        return self.userName if self.userId is None else self.userId


class EnrolTotp(OfUser):
    """Body of enrolTotp."""


class TotpEnrolled(Model):
    """Answer of enrolTotp. qrCode: an SVG image as a data URI. expiresAt: ISO 8601 UTC; for link and seed alike."""

    code: int = 200
    status: str = "Success"
    message: str
    userId: int
    otpauth: str
    seed: str
    qrCode: str
    link: str
    expiresAt: str


class ConfirmTotp(OfUser):
    """Body of confirmTotp."""

    code: Text


def is_user_name(name: str) -> bool:
    """Whether RADIUS can carry it, and a person can tell it from others: no blanks at its ends, nothing unseen."""
    return 1 <= len(name.encode(errors="surrogatepass")) <= MAX_NAME and name.isprintable() and name == name.strip()


def check_password(password: bytes) -> None:
    """Whether RADIUS can carry it. Invalid, without the password."""
    if not 1 <= len(password) <= MAX_PASSWORD or b"\0" in password:
        raise Invalid(f"a password has 1 to {MAX_PASSWORD} octets without NUL, as RADIUS carries it")


def name_key(name: str) -> str:
    """A user's name in the form that is compared."""
    return fold(name)


def _spellings(password: bytes) -> tuple[bytes, ...]:
    if password.isascii():
        return (password,)
    try:
        return password, password.decode().encode("latin-1")
    except UnicodeError:
        return (password,)
