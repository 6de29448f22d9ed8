"""What an Access-Reject carries: what the first factor said, else what the login's method must have."""

from secrets import token_bytes
from typing import Final

from sallyport.login.model import Login, Reason
from sallyport.radius.attributes import EAP_MESSAGE, push_attribute
from sallyport.radius.method import Method
from sallyport.radius.mschap import Unusable, recognise
from sallyport.radius.mschap_reply import ErrorCode, push_error

EAP_FAILURE: Final = 4  # RFC 3748 section 4.2
_CODES: Final = {
    Reason.ACCOUNT_DISABLED: ErrorCode.ACCOUNT_DISABLED,
    Reason.ACCOUNT_EXPIRED: ErrorCode.ACCOUNT_DISABLED,
    Reason.ACCOUNT_LOCKED: ErrorCode.ACCOUNT_DISABLED,
    Reason.LOGON_RESTRICTED: ErrorCode.RESTRICTED_LOGON_HOURS,
    Reason.PASSWORD_EXPIRED: ErrorCode.PASSWORD_EXPIRED,
    Reason.PASSWORD_MUST_CHANGE: ErrorCode.PASSWORD_EXPIRED,
    Reason.CHANGES_PASSWORD: ErrorCode.CHANGING_PASSWORD,
    Reason.BLOCKED: ErrorCode.NO_DIALIN_PERMISSION,
}
_MAY_RETRY: Final = frozenset({Reason.WRONG_PASSWORD, Reason.UNKNOWN_USER})


def refusal(login: Login, reason: Reason) -> bytes:
    """The attributes of a login's Access-Reject, in octets. reason: why it is refused."""
    if login.found.refuse:
        return login.found.refuse
    if EAP_MESSAGE in login.request.first:
        response = login.request.first[EAP_MESSAGE]
        return push_attribute(EAP_MESSAGE, bytes((EAP_FAILURE, response[1] if len(response) > 1 else 0, 0, 4)))
    if login.method in (Method.MSCHAP, Method.MSCHAP2):
        offer = recognise(login.request.vendor_values())
        if offer is not None and not isinstance(offer, Unusable):
            return push_error(offer, mschap_error(reason), challenge=token_bytes(16), retry=reason in _MAY_RETRY)
    return b""


def mschap_error(reason: Reason) -> ErrorCode:
    """What MS-CHAP calls it."""
    return _CODES.get(reason, ErrorCode.AUTHENTICATION_FAILURE)
