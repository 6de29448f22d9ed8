r"""The lines and tokens of FreeRADIUS 3 configuration files, as FreeRADIUS reads them.

The rules were determined by tests with FreeRADIUS 3.2 (tests/peers), because its documentation is incomplete and wrong
about escapes. Octets are handled as Latin-1 text, one character for each octet, so that secrets stay unchanged.

Some rules differ from common expectations:
- In a value a backslash escapes only the surrounding quote: `"a\\b"` has two backslashes.
- An unquoted value ends at white space, a comma or an octet above 127, but not at `#` or `}`.
- In names and paths `\n` and `\101` are escapes.
- `=*` and `=~` are operators, so `ipaddr =*` is an error.

No message contains a value, because the value might be a secret.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from sallyport.base.errors import ClientsFileError

MAX_LINE: Final = 8190  # the limit of FreeRADIUS in octets, including continuations and line ends

_SPACE: Final = " \t\n\v\f\r"  # isspace() in the C locale: no octet above 127
_OPERATOR: Final = r"=~|!~|[{}(),#;]|\+\+|\+=|-=|\^=|:=|=\*|!\*|==|!=|>=|<=|[=<>]"
_GAP: Final = re.compile(rf"[{_SPACE}]*")
_TOKEN: Final = re.compile(
    rf"(?P<operator>{_OPERATOR})"
    r"|(?P<quote>[\"'`])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)"
    rf"|(?P<bare>(?![\"'`])(?:(?!{_OPERATOR})[^{_SPACE}])+)",
    re.DOTALL,
)
_BARE: Final = re.compile(r"[!-+\--\x7f]*")
_WORD: Final = re.compile(rf"[^,{_SPACE}]*")
_CONDITION: Final = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[=!]~\s*/(?:\\.|[^/\\])*/|[(){]")


class Token(NamedTuple):
    """A token of a configuration file. kind: `operator`, `bare` (a word without quotes), `end` (no token is left), or
    the quote around the text."""

    kind: str
    text: str


@dataclass(slots=True)
class Line:
    """A logical line: a line of the file, joined with its continuation lines.

    number: the line number of the first physical line. at: the offset of the next octet to read.
    """

    text: str
    file: str
    number: int
    at: int = 0

    @property
    def where(self) -> str:
        """The file and the line number as `file:line`, for messages."""
        return f"{self.file}:{self.number}"

    def error(self, what: str) -> ClientsFileError:
        """Return an error that names this line. The caller raises the error."""
        return ClientsFileError(f"{self.where}: {what}")

    def peek(self) -> str:
        """Skip white space and return the next octet, or an empty string at the end."""
        self._take(_GAP)
        return self.text[self.at : self.at + 1]

    def end(self) -> None:
        """Skip the rest of the line."""
        self.at = len(self.text)

    def at_expansion(self) -> bool:
        """Return whether an expansion (`%{` or a backquote) follows. FreeRADIUS reads an expansion as a statement."""
        return self.text.startswith(("%{", "`"), self.at)

    def pull_token(self, *, name: bool) -> Token:
        """Read the next operator, word or string.

        name: whether the token is a name. Names and values have different escapes.

        Raises ClientsFileError if a quote is not closed.
        """
        if not self.peek():
            return Token("end", "")
        found = self._take(_TOKEN)
        if found["quote"]:
            return Token(found["quote"], _unquoted(found["quoted"], found["quote"], name=name))
        return Token("operator" if found["operator"] else "bare", found[0])

    def pull_word(self) -> str:
        """Read the path after an include, or the name after $TEMPLATE. A word without quotes ends at white space or a
        comma."""
        if self.peek() in ('"', "'", "`"):
            return self.pull_token(name=True).text
        return self._take(_WORD)[0]

    def pull_value(self) -> Token:
        """Read the value after `=`. The value may be empty."""
        first = self.peek()
        if first in ("", "#"):
            return Token("end", "")
        if first in "\"'`":
            return self.pull_token(name=False)
        return Token("bare", self._take(_WORD if first == "/" else _BARE)[0])

    def pull_condition(self) -> None:
        """Skip the condition of an `if` section and the brace after it.

        Braces in strings and regular expressions belong to the condition.
        """
        depth = 0
        for found in _CONDITION.finditer(self.text, self.at):
            depth += {"(": 1, ")": -1}.get(found[0], 0)
            if found[0] == "{" and depth <= 0:
                self.at = found.end()
                return
        raise self.error("the condition is not followed by a section")

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:  # no token matches: this happens only with an open quote
            raise self.error("a quote is not closed")
        self.at = found.end()
        return found


def _unquoted(text: str, quote: str, *, name: bool) -> str:
    if "\\" not in text:
        return text
    if name:
        return re.sub(r"\\([0-7]{3}|.)", _escaped, text, flags=re.DOTALL)
    return re.sub(r"\\(.)", lambda found: found[1] if found[1] == quote else found[0], text, flags=re.DOTALL)


def _escaped(found: re.Match[str]) -> str:
    text = found[1]
    if len(text) == 3:
        return chr(int(text, 8) & 0xFF)
    return {"n": "\n", "r": "\r", "t": "\t"}.get(text, text)


def lines(text: str, file: str) -> Iterator[Line]:
    r"""Yield the logical lines of a file, without empty lines and comment lines.

    A backslash at the end of a line joins the line with the next line, except in comments. After `"\` the leading white
    space of the next line is removed.

    Raises ClientsFileError if a line is too long, or if a backslash ends the last line.
    """
    held, begun, tight = "", 0, False
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        part = line.rstrip("\r").lstrip(_SPACE if tight else "")
        if not held:
            begun, tight = number, False
            if part.lstrip(_SPACE)[:1] in ("", "#"):
                continue
        if len(held) + len(line) + 1 > MAX_LINE:
            raise ClientsFileError(f"{file}:{number}: the line is too long")
        more = part.endswith("\\")
        tight = more and (tight or part[1:].endswith('"\\'))
        held += part[:-1] if more else part
        if not more:
            yield Line(held, file, begun)
            held = ""
    if held:
        raise ClientsFileError(f"{file}:{begun}: the last line of the file ends with a backslash")
