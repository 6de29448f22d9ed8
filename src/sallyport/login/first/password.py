"""The first factors that ask no other server.

local  an endpoint user's password, by PAP or CHAP (RFC 2865 sections 5.2 and 5.3)
none   the forwarding server has checked it, as NPS with an extension or FreeRADIUS in post-auth does
"""

from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Final

from sallyport.endpoints.user import User
from sallyport.login.first.checker import CODE_LENGTHS
from sallyport.login.login import NOTHING, PASSED, Found, Login, Reason
from sallyport.mfa.provider import Code
from sallyport.radius.attributes import USER_NAME
from sallyport.radius.mschap import (
    MsChap1,
    MsChap2,
    NtKey,
    Offer,
    PasswordChange,
    Unusable,
    peer_names,
    recognise,
)
from sallyport.radius.mschap_reply import push_success
from sallyport.radius.packet import as_text
from sallyport.radius.password import Method, chap_holds, sent_chap, sent_password
from sallyport.radius.salted import Hiding

CHAP_PASSWORD_OCTETS: Final = 17  # RFC 2865 section 5.3
SHORTEST_CHAP_CHALLENGE: Final = 5  # RFC 2865 section 5.40


def check_password(login: Login, user: User | None, takes_code: Callable[[], bool]) -> Reason:
    """Check the password of a user.

    takes_code: whether a code of 6 or 8 digits may follow a PAP password; then `login.code` is that code. Raises
    PacketError: the password field is malformed.
    """
    login.code = None
    if login.method == Method.PAP:
        given = sent_password(login.request, login.client.secret)
        if user is None:
            return Reason.UNKNOWN_USER
        if is_password(given, user):
            return PASSED
        return _split_code(login, given, user) if takes_code() else Reason.WRONG_PASSWORD
    check = _CHECKS.get(login.method)
    return Reason.NO_CREDENTIALS if check is None else check(login, user)


def check_chap(login: Login, user: User | None) -> Reason:
    """Return whether a user's password made the CHAP response (RFC 2865 section 5.3)."""
    if user is None:
        return Reason.UNKNOWN_USER
    value, challenge = sent_chap(login.request)
    right = len(value) == CHAP_PASSWORD_OCTETS and any(
        chap_holds(value, password, challenge) for password in user.passwords
    )
    return PASSED if right else Reason.WRONG_PASSWORD


def attempt_of(login: Login) -> MsChap1 | MsChap2 | Reason:
    """Return the response of a login by MS-CHAP, or the reason why there is none that can be checked."""
    offer: Offer | None = recognise(login.request.vendor_values())
    if isinstance(offer, PasswordChange):
        return Reason.CHANGES_PASSWORD
    return Reason.NO_CREDENTIALS if offer is None or isinstance(offer, Unusable) else offer


def check_mschap(login: Login, user: User | None) -> Reason:
    """Return whether a user's password made the response; if so, `login.found` has the proof and the keys for the
    answer."""
    attempt = attempt_of(login)
    if isinstance(attempt, Reason):
        return attempt
    if user is None:
        return Reason.UNKNOWN_USER
    key, name = made_with(user, attempt, login.request.first[USER_NAME])
    if key is None:
        return Reason.WRONG_PASSWORD
    let_in(login, attempt, key.hash_hash, name)
    return PASSED


def made_with(user: User, attempt: MsChap1 | MsChap2, sent: bytes) -> tuple[NtKey | None, bytes]:
    """Return the user's key and the name that the client hashed, if they made the response; else None. sent: the name
    as the client sent it."""
    key = user.nt_key
    for name in peer_names(sent):
        if key is not None and key.made(attempt, name):
            return key, name
    return None, b""


def let_in(login: Login, attempt: MsChap1 | MsChap2, hash_hash: bytes, name: bytes, found: Found | None = None) -> None:
    """Store the attributes of the answer to a valid attempt.

    hash_hash: of the password, 16 octets. name: the octets that the client hashed as its name. found: other findings
    about the user.
    """
    hiding = Hiding(login.client.secret, login.request.authenticator)
    accept = push_success(attempt, hash_hash, name, hiding)
    if found is None:
        login.found = Found(accept=accept)
    else:
        login.found = Found(accept=found.accept + accept, groups=found.groups, ous=found.ous)


_CHECKS: Final[Mapping[str, Callable[[Login, User | None], Reason]]] = {
    Method.CHAP: check_chap,
    Method.MSCHAP: check_mschap,
    Method.MSCHAP2: check_mschap,
}


def check_vouched(login: Login) -> Reason:
    """Return PASSED if the login's client may vouch for its users' passwords: it was added with `passwordVerified`, and
    the request is signed."""
    if not login.client.password_verified:
        return Reason.MAY_NOT_VOUCH
    return PASSED if login.request.signed else Reason.VOUCHES_UNSIGNED


def known(user: User, accept: bytes = b"") -> Found:
    """Return the groups of an endpoint user after the check, for the rules, and the session's time limit. accept:
    attributes of the answer so far."""
    return Found(accept=accept, groups=user.groups, session_s=user.session_s)


def known_as(login: Login, user: User | None, first: Reason) -> Reason:
    """Set the groups of an endpoint user after the check, for the rules, and the session's time limit."""
    if first is PASSED and user is not None and (user.groups or login.found is not NOTHING):
        login.found = known(user, login.found.accept)
    return first


def still(login: Login, user: User | None, stamp: str) -> Reason:
    """Return whether the user of a login by EAP still exists with the right password; the credentials that were checked
    are gone."""
    if user is None:
        return Reason.UNKNOWN_USER
    return known_as(login, user, PASSED if user.stamp == stamp else Reason.WRONG_PASSWORD)


def ends_in_code(login: Login) -> bool:
    """Return whether a PAP password ends in so many digits that they may be a code. PacketError: it is malformed."""
    return (
        login.method == Method.PAP
        and split_digits(sent_password(login.request, login.client.secret), CODE_LENGTHS[0]) is not None
    )


def typed_code(login: Login) -> Code:
    """Return the text that was typed in answer to a challenge. A malformed CHAP response is an empty text: another
    server that drops it would seem to be unreachable, and the domain's fallbackAction may then admit the login.
    PacketError: the field is malformed."""
    if login.method == Method.PAP:
        return Code(as_text(sent_password(login.request, login.client.secret)))
    if login.method != Method.CHAP:
        return Code("")
    response, challenge = sent_chap(login.request)
    whole = len(response) == CHAP_PASSWORD_OCTETS and len(challenge) >= SHORTEST_CHAP_CHALLENGE
    return Code(None, response, challenge) if whole else Code("")


def split_digits(given: bytes, length: int) -> tuple[bytes, bytes] | None:
    """Return a password and the code of this many digits behind it, from the right end and without a separator, so that
    any password may precede it; None if there is no code."""
    password, digits = given[:-length], given[-length:]
    return (password, digits) if password and digits.isdigit() else None


def is_password(given: bytes, user: User) -> bool:
    """Return whether these octets are the user's password, in constant time for each spelling."""
    for password in user.passwords:  # noqa: SIM110  a generator costs half a microsecond, for every login
        if compare_digest(given, password):
            return True
    return False


def _split_code(login: Login, given: bytes, user: User) -> Reason:
    for length in CODE_LENGTHS:
        split = split_digits(given, length)
        if split is not None and is_password(split[0], user):
            login.code = Code(split[1].decode())
            return PASSED
    return Reason.WRONG_PASSWORD
