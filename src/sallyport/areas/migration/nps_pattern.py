"""Regular expressions of NPS conditions, as patterns of login rules.

NPS searches the expression anywhere in the value, and ignores case (Microsoft Learn, "Use Regular Expressions in NPS").
A login rule has exact values, and patterns with `*` and `?`. So an expression of characters, `.`, `.*`, `.+`, `^`, `$`
and alternatives is expressed exactly. Everything else is not: sets, numbers of repetitions, back references.
"""

import re
from dataclasses import dataclass
from typing import Final

MAX_VALUES: Final = 200
_SPECIAL: Final = frozenset("[]{}()|^$*+?")
_GROUPED: Final = re.compile(r"(\^?)\(([^()]*)\)(\$?)")
_WILD: Final = {".*": "*", ".+": "?*", ".": "?"}
_PIECE: Final = re.compile(r"\\(.)|\.\*\??|\.\+\??|(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a condition accepts. text: the exact text, or a pattern if `is_pattern`."""

    text: str
    is_pattern: bool


class Inexpressible(Exception):
    """An expression that patterns cannot express. The message says why."""


def values_of(expression: str) -> list[Value]:
    """Return the values and patterns that together match what an expression matches. Raises Inexpressible."""
    start, end, inner = "", "", expression
    if (found := _GROUPED.fullmatch(expression)) is not None:
        start, inner, end = found[1], found[2], found[3]
    parts = _alternatives(inner)
    if len(parts) > MAX_VALUES:
        raise Inexpressible(f"has more than {MAX_VALUES} alternatives")
    return list(dict.fromkeys(_value(f"{start}{part}{end}") for part in parts))


def _alternatives(expression: str) -> list[str]:
    parts, last, escaped = [""], "", False
    for last in expression:
        if last == "|" and not escaped:
            parts.append("")
            continue
        escaped = last == "\\" and not escaped
        parts[-1] += last
    return parts


def _value(part: str) -> Value:
    is_start, is_end = part.startswith("^"), part.endswith("$") and not part.endswith("\\$")
    body = part[1 if is_start else 0 : -1 if is_end else None]
    text, is_wild = "", False
    for found in _PIECE.finditer(body):
        escaped, plain = found[1], found[2]
        if escaped is not None:
            if escaped.isalnum():
                raise Inexpressible(f"uses \\{escaped}")
            text += _literal(escaped)
        elif plain is not None and plain != ".":
            if plain in _SPECIAL:
                raise Inexpressible(f"uses {plain}")
            text += _literal(plain)
        else:
            text, is_wild = text + _WILD[found[0].removesuffix("?") if len(found[0]) > 1 else "."], True
    if not text:
        raise Inexpressible("matches the empty text")
    if not is_wild and is_start and is_end:
        return Value(text, False)
    return Value(re.sub(r"\*+", "*", ("" if is_start else "*") + text + ("" if is_end else "*")), True)


def _literal(character: str) -> str:
    if character in "*?":
        raise Inexpressible(f"contains the character {character}")
    return character


def numbers_of(expression: str) -> list[int] | None:
    """Return the numbers that an expression matches exactly, such as `^19$`; None if it also matches others."""
    try:
        values = values_of(expression)
    except Inexpressible:
        return None
    if any(each.is_pattern or not each.text.isdecimal() for each in values):
        return None
    return [int(each.text) for each in values]


def matches(value: Value, text: str) -> bool:
    """Return whether a value of a condition matches a text. Case is ignored."""
    folded = value.text.casefold()
    if not value.is_pattern:
        return folded == text.casefold()
    pattern = "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in folded)
    return re.fullmatch(pattern, text.casefold(), re.DOTALL) is not None
