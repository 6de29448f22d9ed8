"""Normalized texts for comparison: case-folded, and in a Unicode normalization form.

Unicode has two forms of `é`: one character, or an `e` followed by a combining accent. Keyboards and systems differ, but
both forms are the same name (RFC 8265 section 3.3: normalization form C).

Normalization sorts the combining marks after a letter in quadratic time: 80,000 marks take 14 s. Therefore, if a text
is longer than NAME characters, a joiner is first inserted after each group of MARKS marks (UAX #15 section 13,
Stream-Safe Text Format). A text of NAME characters then takes 0.4 ms at most. No language needs so many marks.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, TextIO
from unicodedata import category, combining, normalize

from sallyport.base.wire import JSON

MARKS: Final = 30
NAME: Final = 255
DIGITS: Final = range(6, 11)
"""Numbers of digits of a code that is typed with separators."""
CODE: Final = 40
"""Maximum length of a code with its separators, in characters."""
SUGGESTED: Final = 5
MAX_COMPARED: Final = 1000
"""Maximum number of known names that are compared with an unknown name."""
_SEPARATORS: Final = re.compile(r"([;\t\r\n])")
_BLANKS: Final = ' "\x0b\x0c\x85\xa0\u2028\u2029\u200b\u3000\ufeff'
_SIGNS: Final = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
_UNDEFINED: Final = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
_PRINTED: Final = {octet: bytes((octet,)).decode("cp1252") for octet in range(0x80, 0xA0) if octet not in _UNDEFINED}
"""The printable characters of Windows-1252 in place of control characters of Latin-1. It has none for five octets."""
_OCTETS: Final = {ord(character): octet for octet, character in _PRINTED.items()}
_JOINER: Final = "\u034f"  # COMBINING GRAPHEME JOINER


def normal(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return a text in a normalization form, in linear time."""
    return normalize(form, text if len(text) <= NAME else _with_joiners(text))


def composed(text: str) -> str:
    """Return a text in normalization form C: a letter and its accents become one character if Unicode has this
    character."""
    return text if text.isascii() else normal("NFC", text)


def fold(text: str) -> str:
    """Return a text in the form for comparison: case-folded, and in a normalization form."""
    return text.lower() if text.isascii() else normal("NFC", normal("NFC", text).casefold())


def password_text(password: bytes) -> str:
    """Decode a password as UTF-8. If its octets are not valid UTF-8, decode them as Windows-1252, the encoding of many
    devices and of Windows. It contains the printable characters of Latin-1, and the euro sign, typographic quotation
    marks and dashes."""
    try:
        return password.decode()
    except UnicodeDecodeError:
        return password.decode("latin-1").translate(_PRINTED)


def password_spellings(password: bytes) -> tuple[bytes, ...]:
    """Return the octets that a device may send for a password: the given octets, and if they are UTF-8, the same text
    in Windows-1252."""
    if password.isascii():
        return (password,)
    try:
        return password, password.decode().translate(_OCTETS).encode("latin-1")
    except UnicodeError:  # it is not UTF-8, or Windows-1252 lacks a character
        return (password,)


def plain_code(text: str) -> str:
    """Return the digits of a code that was typed as authenticator apps show it, such as `123 456` or `123-456`.

    Blanks of any kind, invisible characters and dashes are removed. If the rest is not a number of DIGITS ASCII digits,
    or if the text has over CODE characters, the text is returned unchanged. It may be a PIN or a password.
    """
    if len(text) > CODE or text.isdigit():
        return text
    rest = "".join(each for each in text if not each.isspace() and category(each) not in ("Cf", "Pd"))
    return rest if rest.isascii() and rest.isdigit() and len(rest) in DIGITS else text


def counted(number: object, one: str, several: str = "") -> str:
    """Return a number with its noun: `1 device`, `2 devices`. several: the plural of the noun; if empty, an s is
    added."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean "NAME"?` with the known name that is most similar to a word. Return "" if no known name is
    similar. Case is ignored."""
    names = {name.casefold(): name for name in known}
    found = get_close_matches(word.casefold(), list(names), n=1)
    return f' Did you mean "{names[found[0]]}"?' if found else ""


def existing(word: str, known: Iterable[str]) -> str:
    """Return `; existing: NAME, NAME` with some of the known names, for an error message. Return "" if there are no
    names.

    The listed names are those that are most similar to the word. If no name is similar, the first names are listed.
    known: may be very long; at most MAX_COMPARED names are read.
    """
    names = sorted(set(islice(known, MAX_COMPARED)))
    shown = get_close_matches(word, names, n=SUGGESTED) or names[:SUGGESTED]
    left = len(names) - len(shown)
    more = ", and more" if len(names) == MAX_COMPARED else f", and {left} more" if left else ""
    return f"; existing: {', '.join(shown)}{more}" if shown else ""


def folded(texts: Iterable[str]) -> frozenset[str]:
    """Return texts in the form for comparison. A hostile text takes 0.4 ms, so fold a long list in a worker thread."""
    return frozenset(map(fold, texts))


def write_csv(out: TextIO, rows: Iterable[Iterable[JSON]], text: Callable[[JSON], str]) -> None:
    """Write rows as CSV (RFC 4180), in which no text is a formula for a spreadsheet. A text may come from packets or
    directories. text: a function that returns a value as text."""
    import csv

    csv.writer(out).writerows(
        [as_cell(text(value)) if isinstance(value, str | list | dict) else text(value) for value in row] for row in rows
    )


def as_cell(text: str) -> str:
    """Return a text for a cell of a CSV file, in which no spreadsheet finds a formula. An apostrophe is put before the
    sign of a formula.

    In many countries, spreadsheets separate cells by `;`, and then they ignore the quotes of a file with commas. They
    also skip blanks, and read full-width signs like ASCII.
    """
    return "".join(f"{blanks}'{rest}" if sign else blanks + rest for blanks, sign, rest in _parts_of(text))


def of_cell(text: str) -> str:
    """Return the text from which `as_cell` has made a cell."""
    return "".join(blanks + rest.removeprefix("'" if sign else "") for blanks, sign, rest in _parts_of(text))


def _parts_of(text: str) -> Iterator[tuple[str, bool, str]]:
    """Yield the parts between the separators of cells, each with its blanks, whether it is a formula, and its rest."""
    for part in _SEPARATORS.split(text):
        rest = part.lstrip(_BLANKS)
        yield part[: len(part) - len(rest)], rest.lstrip("'")[:1] in _SIGNS, rest


def _with_joiners(text: str) -> str:
    parts: list[str] = []
    marks = 0
    for character in text:
        before, behind, has_letter = _marks_of(character)
        if marks + before > MARKS:
            parts.append(_JOINER)
            marks = 0
        marks = behind if has_letter else marks + before
        parts.append(character)
    return "".join(parts)


@lru_cache(4096)
def _marks_of(character: str) -> tuple[int, int, bool]:
    """Return how many combining marks a character contains before its letter and after its letter, and whether it
    contains a letter. Without a letter, all marks count as marks before the letter."""
    are_marks = [combining(each) > 0 for each in normalize("NFKD", character)]
    if all(are_marks):
        return len(are_marks), 0, False
    return are_marks.index(False), are_marks[::-1].index(False), True


def fold_name(name: str) -> str:
    """Return a user name in the form for comparison, without surrounding spaces.

    Many servers ignore surrounding spaces when they check a password. Without this function, ` ann` could log in with
    the password of ann. The login rules, failure counts and prompts of ann would then not apply.
    """
    return fold(name.strip())


def trimmed(text: str) -> str:
    """Return a text without the blanks and invisible characters around it: spaces, tabs, no-break spaces, zero-width
    characters and control characters."""
    if text.isascii() and text.isprintable():
        return text.strip()
    first, last = 0, len(text)
    while first < last and _is_blank(text[first]):
        first += 1
    while first < last and _is_blank(text[last - 1]):
        last -= 1
    return text[first:last]


def _is_blank(character: str) -> bool:
    return character.isspace() or category(character) in ("Cc", "Cf")


def is_coloured(stream: TextIO) -> bool:
    """Return whether texts on a stream may have colours: on a terminal, unless NO_COLOR is set
    (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def printable(text: str) -> str:
    """Replace unprintable characters, because a terminal may execute control sequences. Line ends are kept."""
    if text.isprintable():  # the usual case, for speed
        return text
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)
