"""An endpoint user in the form that logins use, and the enrolment of the user's one-time-password seed."""

from dataclasses import dataclass

from sallyport.base.text import fold, password_spellings
from sallyport.base.totp import clock_off
from sallyport.radius.mschap import NtKey, nt_hash

METHODS_TEXT = (
    "Authentication methods: SSH, DID and Password, separated by commas. If it is empty, all methods are allowed."
)
MAX_NAME = 253
MAX_PASSWORD = 128
NO_USER = "user not found"
USER_NAME = f"must have 1 to {MAX_NAME} octets of printable text, without blanks at the ends"
"""The rule for user names, as error messages word it."""

UserKey = int | str
"""The id or the name of a user within a domain."""

name_key = fold
"""A function that returns the case-folded form of a user name. User names are compared in this form."""


class User:
    """A user in the form that logins use.

    passwords: the accepted encodings of the password, empty if the user has no password. The first encoding is the
    stored octets. If the password has non-ASCII characters, there may be a second one, see `password_spellings`.
    has_totp: whether the user has a confirmed one-time-password seed. groups: the case-folded names of the user's
    active groups. session_s: the session limit in seconds, or None. stamp: a text that changes whenever the password
    changes.
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
        self.passwords = () if password is None else password_spellings(password)
        self.has_totp = has_totp
        self.groups = groups
        self.session_s = session_s
        self.stamp = stamp
        self._nt_key: NtKey | None = None

    @property
    def nt_key(self) -> NtKey | None:
        """The key with which MS-CHAP verifies the password, or None if the user has no password. The key is computed
        when it is first needed."""
        if self._nt_key is None and self.passwords:
            self._nt_key = NtKey(nt_hash(self.passwords[0]))  # it is decoded, since MS-CHAP hashes characters
        return self._nt_key


@dataclass(frozen=True, slots=True)
class UserRef:
    """The id, domain and name of a user."""

    id: int
    domain_id: int
    name: str


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A pending enrolment. Its seed becomes valid with the first correct code.

    seed: the seed in base32. otpauth: the URI for an authenticator app. tries_left: the enrolment ends after this
    number of further wrong codes. expires_at: the time at which the enrolment expires, in microseconds (UTC).
    """

    user: UserRef
    seed: str
    otpauth: str
    tries_left: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class CodeCheck:
    """The result of checking a code. tries_left: the enrolment ends after this number of further wrong codes. If it has
    ended already, tries_left is 0. off_s: if a wrong code is right for another time nearby, the number of seconds by
    which the phone's clock is about fast (positive) or slow (negative); otherwise 0.
    """

    right: bool
    tries_left: int = 0
    off_s: int = 0

    @property
    def hint(self) -> str:
        """The reason why the code is wrong, with a leading colon. The text is empty if no reason is known."""
        return f": {clock_off(self.off_s)}" if self.off_s else ""


def is_user_name(name: str) -> bool:
    """Return whether a name meets the rule USER_NAME. Such a name fits into a RADIUS attribute, and is readable."""
    return 1 <= len(name.encode(errors="surrogatepass")) <= MAX_NAME and name.isprintable() and name == name.strip()
