"""Paths into a credential: JSONPath (RFC 9535), of which what takes time by the document's length is taken."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

from jsonpath import JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from jsonpath.path import JSONPath
from jsonpath.segments import JSONPathRecursiveDescentSegment
from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector
from pydantic import JsonValue

LONGEST: Final = 255
MAX_SEGMENTS: Final = 16
_ENVIRONMENT: Final = JSONPathEnvironment(strict=True)


@lru_cache(maxsize=256)
def compiled(path: str) -> JSONPath:
    """A path that can be evaluated in time of the document's length. ValueError: it is none."""
    if len(path) > LONGEST:
        raise ValueError("the path is too long")
    try:
        query = _ENVIRONMENT.compile(path)
    except (JSONPathError, RecursionError) as error:
        raise ValueError("no JSONPath of RFC 9535") from error
    if not isinstance(query, JSONPath) or len(query.segments) > MAX_SEGMENTS:
        raise ValueError("the path has too many parts")
    descents = sum(isinstance(segment, JSONPathRecursiveDescentSegment) for segment in query.segments)
    selectors = [segment.selectors for segment in query.segments]
    plain = all(
        len(each) == 1 and isinstance(each[0], NameSelector | IndexSelector | WildcardSelector) for each in selectors
    )
    if descents > 1 or not plain:
        raise ValueError("a path is of names, indexes and wildcards, with one descent at most")
    return query


def found(path: str, document: Mapping[str, JsonValue]) -> list[object]:
    """The first value that a path finds, alone in a list; none where it finds nothing."""
    try:
        return [each.obj for each in islice(compiled(path).finditer(dict(document)), 1)]
    except JSONPathError:  # too deep for the library
        return []
