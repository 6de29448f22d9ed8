"""The canonical form of JSON (RFC 8785): names in the order of their UTF-16 code units, numbers as ECMAScript writes
them, no white space."""

import json
import math
from decimal import Decimal
from typing import Final

from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON

_EXACT: Final = 1 << 53
_LITERALS: Final = {True: "true", False: "false", None: "null"}


def canonical(value: JSON) -> bytes:
    """UTF-8. CredentialError: a number that is none, half a surrogate pair, or too deep."""
    try:
        return _text(value).encode()
    except (UnicodeEncodeError, RecursionError, OverflowError):
        raise CredentialError("JSON that has no canonical form") from None


def _text(value: JSON) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ",".join([f"{_text(name)}:{_text(value[name])}" for name in sorted(value, key=_order)]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_text(each) for each in value]) + "]"
    if isinstance(value, bool) or value is None:
        return _LITERALS[value]
    if isinstance(value, int) and abs(value) < _EXACT:
        return str(value)
    return _number(float(value))


def _order(name: str) -> bytes:
    return name.encode("utf-16-be")


def _number(value: float) -> str:
    """ECMAScript's Number::toString (RFC 8785 section 3.2.2.3). Python finds the same shortest digits, and places the
    point elsewhere."""
    if not math.isfinite(value):
        raise CredentialError("JSON that has no canonical form")
    sign = "-" if value < 0 else ""
    parts = Decimal(repr(abs(value))).normalize().as_tuple()
    digits = "".join(map(str, parts.digits))
    point = len(digits) + int(parts.exponent)
    if value == 0:
        return "0"
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"
