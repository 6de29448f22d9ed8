"""MAC addresses as NAS send them: their notations, and the forms in which they are compared and shown."""

import re
from typing import Final

DIGITS: Final = 12
MAX_LENGTH: Final = 17
"""The number of characters of the longest notation."""
_MAC: Final = re.compile(
    r"[0-9a-f]{12}|[0-9a-f]{2}(?:([-:. ])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}"
    r"|[0-9a-f]{4}([-:.])[0-9a-f]{4}\2[0-9a-f]{4}|[0-9a-f]{6}[-:.][0-9a-f]{6}"
)
_SEPARATORS: Final = str.maketrans("", "", "-:. ")


def station_key(station: str) -> str:
    """Return the form in which a Calling-Station-Id is compared: a MAC address as 12 hex digits, any other text
    case-folded."""
    return mac_key(station) or station.strip().casefold()


def station_form(station: bytes) -> str | bytes:
    """Return the form of a Calling-Station-Id in which the requests of one login are compared: a MAC address as 12 hex
    digits, any other value as its octets."""
    return mac_key(station.decode("latin-1")) or station


def mac_key(text: str) -> str:
    """Return a MAC address in any notation as 12 hex digits in lower case. Return an empty text for anything else."""
    folded = text.strip().casefold()
    return folded.translate(_SEPARATORS) if _MAC.fullmatch(folded) else ""


def mac_text(key: str) -> str:
    """Return a MAC address as aa:bb:cc:dd:ee:ff."""
    return ":".join(key[at : at + 2] for at in range(0, DIGITS, 2))


def is_random(key: str) -> bool:
    """Return whether a MAC address is locally administered and no group address. Such an address is usually made up at
    random, as telephones do for each network (IEEE 802-2014 section 8.4). key: the address as 12 hex digits."""
    return key[1] in "26ae"


def is_universal(key: str) -> bool:
    """Return whether a MAC address is one that a manufacturer has given to one device: it is neither locally
    administered nor a group address. key: the address as 12 hex digits, or an empty text."""
    return bool(key.strip("0")) and key[1] in "048c"


def spellings(key: str) -> list[str]:
    """Return the notations that NAS use for a MAC address. All are in lower case."""
    pairs, fours = [key[at : at + 2] for at in range(0, DIGITS, 2)], [key[at : at + 4] for at in range(0, DIGITS, 4)]
    return [key, ":".join(pairs), "-".join(pairs), ".".join(fours), "-".join(fours), f"{key[:6]}-{key[6:]}"]


def as_mac(text: str) -> str:
    """Return a MAC address in any notation as aa:bb:cc:dd:ee:ff. Return any other text unchanged."""
    key = mac_key(text)
    return mac_text(key) if key else text
