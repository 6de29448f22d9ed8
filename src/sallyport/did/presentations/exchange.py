"""Whether a credential is what a definition asks for (DIF Presentation Exchange 2.1.1, sections 5 and 8).

For each field its paths are tried in order. The first value that a path finds is tested by the filter; where that
fails the next path is tried. A field that no path satisfies fails the credential unless it is optional. All fields of a
descriptor must be in the same credential.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from sallyport.did.crypto.jws import Token
from sallyport.did.presentations.definition import Definition, InputDescriptor, RequestedField

Document = Mapping[str, JsonValue]
_EDWARDS = frozenset({"EdDSA", "Ed25519"})


def satisfies(definition: Definition, payload: Document, alg: str) -> bool:
    """Whether one credential meets every descriptor. payload: of its JWT. alg: of its signature."""
    return all(_meets(descriptor, payload, alg) for descriptor in definition.input_descriptors)


def is_met_by(definition: Definition, token: Token) -> bool:
    """Whether a credential's token meets every descriptor."""
    return satisfies(definition, token.payload, token.algorithm)


def _meets(descriptor: InputDescriptor, payload: Document, alg: str) -> bool:
    if descriptor.format is not None:
        taken = descriptor.format.jwt_vc
        if taken is None or not _takes(taken.alg, alg):
            return False
    return all(each.optional or _has(each, payload) for each in descriptor.constraints.fields)


def _takes(algs: Sequence[str], alg: str) -> bool:
    """RFC 9864 calls EdDSA over Ed25519 by the curve's name; both are one."""
    same = _EDWARDS if alg in _EDWARDS else {alg}
    return not same.isdisjoint(algs)


def _has(field: RequestedField, payload: Document) -> bool:
    from jsonschema import Draft7Validator

    from sallyport.did.presentations.paths import found

    values = (value for path in field.path for value in found(path, payload))
    return any(field.filter is None or Draft7Validator(field.filter).is_valid(value) for value in values)
