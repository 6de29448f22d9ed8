"""Values that are costly to read, compare, match or use, at the limits of their fields."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_CLASSES: Final = "\u0345\u0301\u0327\u05b0\u0591\u0323"
"""Combining marks of different classes, which normalization has to sort."""
MARKS: Final = "a" + _CLASSES * 100_000


def texts(most: int) -> Iterator[tuple[str, str]]:
    """Yield texts of at most so many octets, by what is costly about them."""
    yield "marks", MARKS[: max(most // 2, 1)] if most > 4096 else MARKS[:most]
    if most < 256:
        return
    yield "brackets", "(" * most
    if most > 4096:
        yield "letters", "a" * most
        yield "digits", "9" * most
        yield "spaces", "a" + " " * (most - 2) + "a"
        yield "wide", "\ufdfa" * (most // 3)
        yield "escapes", "\\" * (most // 2)


def objects(room: int) -> Iterator[tuple[str, Any]]:
    """Yield objects with many names, deep objects and a long text."""
    yield "names", {f"n{number}": 1 for number in range(room // 13)}
    yield "long names", {f"{number}{MARKS[:400]}": "" for number in range(room // 820)}
    deep: Any = 1
    for _ in range(100):
        deep = {"a": [deep]}
    yield "deep", deep
    yield "long text", {"a": MARKS[: room // 2]}
    yield "many lists", {"a": [[]] * 49_000}


BY_NAME: Final[Mapping[str, Mapping[str, Any]]] = {}
