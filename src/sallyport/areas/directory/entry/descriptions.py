"""Attribute descriptions (RFC 4512 section 2.5): the name of an attribute with options, and the meaning of each option.

lang-de                  a value in another language (RFC 3866): a further value of the attribute
binary                   an encoding for transfer (RFC 4522): the same attribute
range=0-1499             a part of the values (MS-ADTS section 3.1.1.3.1.3.3); a whole attribute only if all parts
                         are present
adcsn-, mdcsn-, vucsn-   replication data of 389 Directory Server and its relatives: the same attribute
deleted, deletedattribute   a value that was deleted, and is kept only for replication: no value at all
any other option         another attribute (RFC 4512 section 2.5)
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

MAX_CACHED_LENGTH: Final = 255
_RANGE: Final = re.compile(r"range=([0-9]{1,10})-([0-9]{1,10}|\*)")
_LANGUAGE: Final = re.compile(r"lang-[a-z0-9-]*")
_REPLICATION: Final = re.compile(r"(?:ad|md|vd|vu)csn-[0-9a-f]+")
_DELETED: Final = frozenset({"deleted", "deletedattribute"})

Values = tuple[bytes, ...]


class Description(NamedTuple):
    """An attribute description after its options were interpreted.

    key: the description without replication data. It is empty if the values were deleted. attribute: the attribute to
    which the values belong; empty if there is none. is_tagged: whether the values are in another language. part: the
    first and the last position of the values if they are only a part of all values; the last position is -1 for the
    last part.
    """

    key: str
    attribute: str
    is_tagged: bool = False
    part: tuple[int, int] | None = None


def attribute_key(description: str) -> str:
    """Return the normalized form of an attribute description (RFC 4512 section 2.5). The name is in lower case, and the
    options are sorted."""
    return _known_key(description) if len(description) <= MAX_CACHED_LENGTH else _key(description)


def _key(description: str) -> str:
    name, *options = description.lower().split(";")
    return ";".join((name, *sorted(options)))


_known_key: Final = lru_cache(4096)(_key)


def described(key: str) -> Description:
    """Return the meaning of an attribute description. key: the description in the form of `attribute_key`."""
    name, *options = key.split(";")
    if not _DELETED.isdisjoint(options):
        return Description("", "")
    options = [option for option in options if not _REPLICATION.fullmatch(option)]
    key, is_tagged, part, is_known = ";".join((name, *options)), False, None, True
    for option in options:
        bounds = _RANGE.fullmatch(option)
        if bounds is not None:
            part = int(bounds[1]), -1 if bounds[2] == "*" else int(bounds[2])
        elif _LANGUAGE.fullmatch(option):
            is_tagged = True
        else:
            is_known &= option == "binary"
    return Description(key, name if is_known else "", is_tagged, part)


def interpreted(values: Iterable[tuple[str, Values]]) -> dict[str, Values]:
    """Return the attributes of an entry. The keys are attributes, and descriptions that a field mapping can name.

    An attribute has its own values first, and then those in other languages. If only a part of the values is present,
    the description of the part remains a key (`incomplete`). values: the values of each description, in the form of
    `attribute_key`.
    """
    found = defaultdict[str, list[bytes]](list)  # lists, because a file may have 500,000 descriptions of one attribute
    optioned: list[tuple[Description, Values]] = []
    for key, those in values:
        if ";" not in key:
            found[key] += those
        elif (description := described(key)).key:
            optioned.append((description, those))
    whole = set(_whole([each for each, _ in optioned if each.part is not None]))
    for description, those in sorted(optioned, key=lambda each: (each[0].is_tagged, each[0].part or (0, 0))):
        if description.attribute:
            found[description.attribute] += those
        is_whole = description.part is not None and description.attribute in whole
        if description.key != description.attribute and not is_whole:
            found[description.key] += those
    return {key: tuple(several) for key, several in found.items()}


def _whole(parts: Iterable[Description]) -> Iterator[str]:
    """Yield the attributes of which all parts are present."""
    following: dict[str, int] = {}
    for each in sorted(parts, key=lambda each: each.part or (0, 0)):
        first, last = each.part or (0, 0)
        if first != following.get(each.attribute, 0):
            following[each.attribute] = -1
        elif last >= first:
            following[each.attribute] = last + 1
        elif last < 0:
            yield each.attribute


def incomplete(attributes: Mapping[str, object]) -> set[str]:
    """Return the attributes of which only a part of the values is present."""
    ranged = (described(key) for key in attributes if ";range=" in key)
    return {each.attribute or each.key for each in ranged if each.part is not None}
