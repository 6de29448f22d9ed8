"""Evaluate a definition on a credential (DIF Presentation Exchange 2.1.1, sections 5 and 8).

The paths of a field are tried in order. The filter tests the first value that a path finds. If the test fails, the next
path is tried. If no path of a field succeeds, the credential fails, unless the field is optional. All fields of a
descriptor must be in the same credential.

A path is a JSONPath (RFC 9535) whose evaluation takes time proportional to the document's length.

Import this module in a worker thread, and not at the start of the service, because its libraries take a tenth of a
second to import.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from jsonpath import JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from jsonpath.path import JSONPath
from jsonpath.segments import JSONPathRecursiveDescentSegment
from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector
from jsonschema import Draft7Validator
from pydantic import JsonValue

from sallyport.areas.did.presentations.definition import Definition, InputDescriptor, RequestedField

Payload = Mapping[str, JsonValue]
MAX_LENGTH: Final = 255
MAX_SEGMENTS: Final = 16
_ENVIRONMENT: Final = JSONPathEnvironment(strict=True)
_EDWARDS: Final = frozenset({"EdDSA", "Ed25519"})


def satisfies(definition: Definition, payload: Payload, alg: str) -> bool:
    """Return whether a credential meets every descriptor of a definition. payload: the payload of the credential's
    JWT. alg: the algorithm of its signature."""
    return all(_meets(each, payload, alg) for each in definition.input_descriptors)


def _meets(descriptor: InputDescriptor, payload: Payload, alg: str) -> bool:
    if descriptor.format is not None:
        accepted = descriptor.format.jwt_vc
        if accepted is None or not _accepts(accepted.alg, alg):
            return False
    return all(each.optional or _has(each, payload) for each in descriptor.constraints.fields)


def _accepts(algs: Sequence[str], alg: str) -> bool:
    """Return whether `alg` is one of the accepted algorithms. `Ed25519` and `EdDSA` count as the same algorithm (RFC
    9864)."""
    same = _EDWARDS if alg in _EDWARDS else {alg}
    return not same.isdisjoint(algs)


def _has(field: RequestedField, payload: Payload) -> bool:
    values = (value for path in field.path for value in found(path, payload))
    return any(field.filter is None or Draft7Validator(field.filter).is_valid(value) for value in values)


@lru_cache(maxsize=256)
def compiled(path: str) -> JSONPath:
    """Return a path that is ready for evaluation. Raises ValueError if the text is not a path, or if the time of its
    evaluation may grow faster than the document's length."""
    if len(path) > MAX_LENGTH:
        raise ValueError("the path is too long")
    try:
        query = _ENVIRONMENT.compile(path)
    except (JSONPathError, RecursionError) as error:
        raise ValueError("the path is not a JSONPath (RFC 9535)") from error
    if not isinstance(query, JSONPath) or len(query.segments) > MAX_SEGMENTS:
        raise ValueError("the path has too many parts")
    descents = sum(isinstance(segment, JSONPathRecursiveDescentSegment) for segment in query.segments)
    selectors = [segment.selectors for segment in query.segments]
    plain = all(
        len(each) == 1 and isinstance(each[0], NameSelector | IndexSelector | WildcardSelector) for each in selectors
    )
    if descents > 1 or not plain:
        raise ValueError("a path must consist of names, indexes and wildcards, with at most one .. segment")
    return query


def found(path: str, document: Payload) -> list[object]:
    """Return a list that contains only the first value that a path finds. If the path finds no value, the list is
    empty."""
    try:
        return [each.obj for each in islice(compiled(path).finditer(dict(document)), 1)]
    except JSONPathError:  # the document is nested too deep for the library
        return []
