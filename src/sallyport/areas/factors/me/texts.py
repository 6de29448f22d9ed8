"""The messages of the pages, and the functions that turn values into their texts."""

from collections.abc import Sequence
from typing import Final

from sallyport.areas.factors.me.host import OwnLogin, PasswordResult
from sallyport.base.errors import Invalid, NotFound, Refused
from sallyport.base.mac import station_key

SHOWN_DEVICES: Final = 20
"""Maximum number of devices that a page shows."""
WRONG: Final = "The name or the password is wrong, or the account is locked."
UNAVAILABLE: Final = "The password cannot be checked now. Try again later."
UNSUPPORTED: Final = "Passwords of this domain cannot be checked on this page. Ask your administrator."
NO_DOMAIN: Final = "Open the address that your administrator gave you, or type your name as ann@example.com."
NO_FACTOR: Final = "You have no second factor yet. Ask your administrator for an enrolment link."
GONE: Final = "The link has expired, was used already, or belongs to another browser. Ask for a new one."
DENIED: Final = (
    "Your password may be known to somebody else: change it now, and tell your administrator. Open prompts, links and "
    "sign-ins of yours have ended."
)
OF_RESULT: Final = {
    PasswordResult.REFUSED: WRONG,
    PasswordResult.UNAVAILABLE: UNAVAILABLE,
    PasswordResult.UNSUPPORTED: UNSUPPORTED,
}


def devices(logins: Sequence[OwnLogin]) -> list[OwnLogin]:
    """Return the last login from each station, the newest first."""
    found: dict[str, OwnLogin] = {}
    for each in logins:
        if each.station:
            found.setdefault(station_key(each.station), each)
    return list(found.values())[:SHOWN_DEVICES]


def sentence(error: Refused) -> str:
    """Return the message of an error as a sentence."""
    text = str(error)
    if isinstance(error, Invalid) and error.fields and text == f"invalid {error.fields[0].field}":
        text = f"the {error.fields[0].field} {error.fields[0].message}"
    return f"{text[:1].upper()}{text[1:]}."


def number(text: str) -> int:
    """Return the number of a hidden field. Raises NotFound."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise NotFound("there is no such entry")
    return int(text)
