"""User-Names on the way to a home server and back. Its Accept may name the user itself (RFC 2865 section 5.1)."""

from sallyport.base.text import fold
from sallyport.login.login import Login
from sallyport.policy.rules.match import station_key
from sallyport.radius.attributes import USER_NAME
from sallyport.radius.method import Method
from sallyport.radius.packet import as_name


def split_name(name: bytes) -> tuple[bytes, bytes]:
    r"""A User-Name as (user, realm): `REALM\user`, or `user@realm`, where the last @ counts; without one, (name, b"").

    As `login.identity.split_realm`, but of octets: what is passed on need not be text.
    """
    if b"\\" in name:
        realm, _, user = name.partition(b"\\")
        return user, realm
    if b"@" in name:
        user, _, realm = name.rpartition(b"@")
        return user, realm
    return name, b""


def accepted_user(login: Login, name: bytes) -> str | None:
    """Whom an Accept lets in, without realm, where it brings a User-Name. None: somebody whom the request cannot mean.

    The identity outside an EAP tunnel may hide who is inside (RFC 3579 section 3), but not the domain, which it found:
    a realm is that of the request, or one of the domain's. Any other request is its own user's, whatever realm the home
    server puts to the name, and however it writes a MAC address.
    """
    user, realm = map(as_name, split_name(name))
    is_same = station_key(user) == station_key(login.user)
    if login.method != Method.EAP:
        return login.user if is_same else None
    outer_realm = as_name(split_name(login.request.first.get(USER_NAME, b""))[1])
    own = () if login.domain is None else (login.domain.name, *login.domain.realms)
    if realm and fold(realm) not in map(fold, (outer_realm, *own)):
        return None
    if is_same:
        return login.user
    is_name = user.isprintable() and "\ufffd" not in user  # what `as_text` makes of NUL
    return user if user and is_name else None
