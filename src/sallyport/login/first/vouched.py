"""The first factor `none`: the forwarding server has checked the password already, as NPS with an extension or
FreeRADIUS in post-auth does. Only a client that was added with `passwordVerified` may say so, and only signed."""

from sallyport.login.model import PASSED, Login, Reason


def check_vouched(login: Login) -> Reason:
    """Whether the login's client may vouch for its users' passwords."""
    if not login.client.password_verified:
        return Reason.MAY_NOT_VOUCH
    return PASSED if login.request.signed else Reason.VOUCHES_UNSIGNED
