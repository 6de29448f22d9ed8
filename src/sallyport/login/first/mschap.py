"""MS-CHAP and MS-CHAPv2 as a first factor: against an endpoint user's password, or a hash that somebody else gives."""

from sallyport.endpoints.user import User
from sallyport.login.login import PASSED, Found, Login, Reason
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
from sallyport.radius.salted import Hiding


def attempt_of(login: Login) -> MsChap1 | MsChap2 | Reason:
    """What is to be checked of a login that came by MS-CHAP, or why nothing can be."""
    offer: Offer | None = recognise(login.request.vendor_values())
    if isinstance(offer, PasswordChange):
        return Reason.CHANGES_PASSWORD
    return Reason.NO_CREDENTIALS if offer is None or isinstance(offer, Unusable) else offer


def check_mschap(login: Login, user: User | None) -> Reason:
    """Whether a user's password made the response; then `login.found` has the proof and the keys for the answer."""
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
    """The user's key and the name that the client hashed, where they made the response; else None. sent: the name as
    the client sent it."""
    key = user.nt_key
    for name in peer_names(sent):
        if key is not None and key.made(attempt, name):
            return key, name
    return None, b""


def let_in(login: Login, attempt: MsChap1 | MsChap2, hash_hash: bytes, name: bytes, found: Found | None = None) -> None:
    """Note what the answer to an attempt that holds carries.

    hash_hash: of the password, 16 octets. name: the octets that the client hashed as its name. found: what else is
    known of the user.
    """
    hiding = Hiding(login.client.secret, login.request.authenticator)
    accept = push_success(attempt, hash_hash, name, hiding)
    if found is None:
        login.found = Found(accept=accept)
    else:
        login.found = Found(accept=found.accept + accept, groups=found.groups, ous=found.ous)
