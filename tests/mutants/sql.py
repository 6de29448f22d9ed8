"""The kinds of faults of SQL: what else the text of a statement, or of a part of it, may be.

A part begins with a word of SQL, such as `where` or `and`, or compares with a parameter or the time. The values of an
f-string are shown as placeholders, which stay as they are.
"""

import re
from collections.abc import Iterator

_WORDS = re.compile(r"\s*(?:select|insert into|update|delete from|with|from|where|and|or|on|join|left join)\s")
_SIGNS = re.compile(r"\s(?:=|<|>|<=|>=|<>|is|in|between|like|exists|values)[\s(]| for update|\bset ")
_COMPARED = re.compile(r"[=<>] (?::\w|now_us\(\))")
_CONDITION = re.compile(r"\b(?:where|and|or|on|having|when)\s+(?!conflict\b)")
_END = re.compile(
    r"\s+(?:and|or|then|group by|order by|having|limit|offset|for update|returning|on conflict|union|left join|join"
    r"|where|window)\b|\s*$"
)
_CHANGES = (
    (re.compile(r" for update(?: of \w+)?(?: skip locked)?"), ""),
    (re.compile(r"\bis null\b"), "is not null"),
    (re.compile(r"\bis not null\b"), "is null"),
    (re.compile(r"(?<=\s)<(?=\s)"), "<="),
    (re.compile(r"(?<=\s)<=(?=\s)"), "<"),
    (re.compile(r"(?<=\s)>(?=\s)"), ">="),
    (re.compile(r"(?<=\s)>=(?=\s)"), ">"),
    (re.compile(r"\bleast\("), "greatest("),
    (re.compile(r"\bmin\("), "max("),
    (re.compile(r"\bmax\("), "min("),
    (re.compile(r"\bnot exists\b"), "exists"),
)


def is_sql(text: str) -> bool:
    """Return whether a text is a statement or a part of one."""
    begins = _WORDS.match(text) is not None and _SIGNS.search(f"{text} ") is not None
    return begins or _COMPARED.search(text) is not None


def sql_faults(text: str) -> Iterator[str]:
    """Yield the text with each condition replaced by `true`, and with other signs."""
    if not _WORDS.match(text):  # a condition alone
        yield from (each.removeprefix("where ") for each in sql_faults(f"where {text}"))
        return
    for found in _CONDITION.finditer(text):
        end = _end_of_condition(text, found.end())
        condition = text[found.end() : end]
        if condition and " between " not in f" {condition} " and not _is_bound(text, found.start()):
            yield f"{text[: found.end()]}true{text[end:]}"
    for sign, other in _CHANGES:
        for found in sign.finditer(text):
            yield text[: found.start()] + other + text[found.end() :]


def _end_of_condition(text: str, begin: int) -> int:
    """Return the end of the condition that begins at a position: outside of its parentheses."""
    depth = 0
    for at in range(begin, len(text)):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
            if depth < 0:
                return at
        elif depth == 0 and (text[at] == "," or (text[at].isspace() and _END.match(text, at))):
            return at
    return len(text)


def _is_bound(text: str, at: int) -> bool:
    """Return whether the word at a position is the `and` of `between ... and ...`."""
    return re.search(r"\bbetween\s+\S+\s+$", text[:at]) is not None
