"""First factors that ask no other server.

`local` checks the password of an endpoint user by PAP, CHAP or MS-CHAP. `none` trusts the check of the forwarding
server, such as NPS with an extension, or FreeRADIUS in its post-auth section.
"""

from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Final

from sallyport.areas.login.first.checker import CODE_LENGTHS
from sallyport.areas.login.login import NOTHING, PASSED, FirstFactorResult, Found, Reason
from sallyport.areas.mfa.provider import NO_BREAK_SPACES, Code
from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.users.user import User
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
from sallyport.radius.mschap_reply import ENCRYPTION, push_success
from sallyport.radius.packet import Request, as_text
from sallyport.radius.password import Method, chap_holds, sent_chap, sent_password
from sallyport.radius.salted import Hiding

CHAP_PASSWORD_OCTETS: Final = 17  # RFC 2865 section 5.3
MIN_CHALLENGE_OCTETS: Final = 5  # RFC 2865 section 5.40


_WRONG: Final = FirstFactorResult(Reason.WRONG_PASSWORD)
_PASSED: Final = FirstFactorResult(PASSED)


def check_password(
    arrival: Arrival, method: str, user: User | None, takes_code: Callable[[], bool]
) -> FirstFactorResult:
    """Check the credentials of a request against the password of an endpoint user. Raises PacketError if the password
    field is malformed.

    method: the authentication method of the request. user: the endpoint user, or None if the name is unknown.
    takes_code: a function that returns whether a code of 6 or 8 digits may follow a PAP password.
    """
    if method == Method.PAP:
        given = sent_password(arrival.request, arrival.client.secret)
        if user is None:
            return FirstFactorResult(Reason.UNKNOWN_USER)
        if is_password(given, user):
            return FirstFactorResult(PASSED, known(user)) if user.groups else _PASSED
        return _split_code(given, user) if takes_code() else _WRONG
    check = _CHECKS.get(method)
    return FirstFactorResult(Reason.NO_CREDENTIALS) if check is None else check(arrival, user)


def check_chap(arrival: Arrival, user: User | None) -> FirstFactorResult:
    """Check a CHAP response against the user's password (RFC 2865 section 5.3)."""
    if user is None:
        return FirstFactorResult(Reason.UNKNOWN_USER)
    value, challenge = sent_chap(arrival.request)
    right = len(value) == CHAP_PASSWORD_OCTETS and any(
        chap_holds(value, password, challenge) for password in user.passwords
    )
    return FirstFactorResult(PASSED, known(user)) if right else _WRONG


def attempt_of(request: Request) -> MsChap1 | MsChap2 | Reason:
    """Return the MS-CHAP response in a request, or the reason why it cannot be checked."""
    offer: Offer | None = recognise(request.vendor_values())
    if isinstance(offer, PasswordChange):
        return Reason.CHANGES_PASSWORD
    return Reason.NO_CREDENTIALS if offer is None or isinstance(offer, Unusable) else offer


def check_mschap(arrival: Arrival, user: User | None) -> FirstFactorResult:
    """Check an MS-CHAP response against the user's password. If it is correct, the result has the attributes for the
    Access-Accept."""
    attempt = attempt_of(arrival.request)
    if isinstance(attempt, Reason):
        return FirstFactorResult(attempt)
    if user is None:
        return FirstFactorResult(Reason.UNKNOWN_USER)
    key, name = made_with(user, attempt, arrival.request.first[USER_NAME])
    if key is None:
        return _WRONG
    return FirstFactorResult(PASSED, known(user, mschap_found(arrival, attempt, key.hash_hash, name)))


def made_with(user: User, attempt: MsChap1 | MsChap2, sent: bytes) -> tuple[NtKey | None, bytes]:
    """Check an MS-CHAP response. If it is correct, return the user's NT key, and the user name with which the client
    has computed the response. If it is wrong, return None and an empty name. sent: the User-Name of the request."""
    key = user.nt_key
    for name in peer_names(sent):
        if key is not None and key.made(attempt, name):
            return key, name
    return None, b""


def mschap_found(
    arrival: Arrival, attempt: MsChap1 | MsChap2, hash_hash: bytes, name: bytes, found: Found = NOTHING
) -> Found:
    """Return the attributes for the Access-Accept after a correct MS-CHAP response. They prove to the client that this
    service knows the password.

    hash_hash: the hash of the password's NT hash, 16 octets. name: the user name with which the client has computed its
    response. found: the user's groups and other attributes for the Access-Accept.
    """
    hiding = Hiding(arrival.client.secret, arrival.request.authenticator)
    return Found(
        accept=found.accept + ENCRYPTION,
        keys=push_success(attempt, hash_hash, name, hiding),
        groups=found.groups,
        ous=found.ous,
        password_at=found.password_at,
    )


_CHECKS: Final[Mapping[str, Callable[[Arrival, User | None], FirstFactorResult]]] = {
    Method.CHAP: check_chap,
    Method.MSCHAP: check_mschap,
    Method.MSCHAP2: check_mschap,
}


def check_vouched(arrival: Arrival) -> Reason:
    """Check whether this service trusts the password check of a forwarding server. Return PASSED if the RADIUS client
    was added with `passwordVerified` and the request is signed. Otherwise return the reason for a refusal."""
    if not arrival.client.password_verified:
        return Reason.MAY_NOT_VOUCH
    return PASSED if arrival.request.signed else Reason.VOUCHES_UNSIGNED


def known(user: User, found: Found = NOTHING) -> Found:
    """Return the data about an endpoint user that a login needs: the groups for login rules, and the maximum duration
    of a session. found: its `accept` and `keys` are kept."""
    return Found(accept=found.accept, keys=found.keys, groups=user.groups, session_s=user.session_s)


def ends_in_code(arrival: Arrival, method: str) -> bool:
    """Return whether the login has a PAP password that ends in 6 or 8 digits. These may be a code. Raises
    PacketError if the password field is malformed."""
    if method != Method.PAP:
        return False
    given = sent_password(arrival.request, arrival.client.secret)
    return any(split_digits(given, length) is not None for length in CODE_LENGTHS)


def typed_code(arrival: Arrival, method: str) -> Code:
    """Return the code that the user typed to answer a challenge. Raises PacketError if the password field is malformed.

    A malformed CHAP response counts as an empty code. It must not be sent to the provider's RADIUS server, because the
    server might drop the request. The server would then appear unreachable, and the domain's fallbackAction might admit
    the login.
    """
    if method == Method.PAP:
        return Code(as_text(sent_password(arrival.request, arrival.client.secret)))
    if method != Method.CHAP:
        return Code("")
    response, challenge = sent_chap(arrival.request)
    whole = len(response) == CHAP_PASSWORD_OCTETS and len(challenge) >= MIN_CHALLENGE_OCTETS
    return Code(None, response, challenge) if whole else Code("")


def split_digits(given: bytes, length: int) -> tuple[bytes, bytes] | None:
    """Split the last `length` digits from a password, because they may be a code. Return (password, code). Return None
    if the password does not end in so many digits, or if nothing precedes them.

    A blank or a no-break space may divide the digits into two groups of the same length, as authenticator apps show
    them. A dash may not, because it may belong to the password.
    """
    password, digits = given[:-length], given[-length:]
    if digits.isdigit():
        return (password, digits) if password else None
    half = length // 2
    last = given[-half:]
    if not last.isdigit():
        return None
    for blank in (b" ", *NO_BREAK_SPACES):
        middle = len(given) - half - len(blank)
        begin = middle - half
        if begin > 0 and given[middle:-half] == blank and (first := given[begin:middle]).isdigit():
            return given[:begin], first + last
    return None


def is_password(given: bytes, user: User) -> bool:
    """Return whether the octets are the user's password in one of the accepted encodings. Each comparison takes
    constant time."""
    for password in user.passwords:  # noqa: SIM110  a generator costs half a microsecond, for every login
        if compare_digest(given, password):
            return True
    return False


def _split_code(given: bytes, user: User) -> FirstFactorResult:
    for length in CODE_LENGTHS:
        split = split_digits(given, length)
        if split is not None and is_password(split[0], user):
            return FirstFactorResult(PASSED, known(user), Code(split[1].decode()))
    return _WRONG
