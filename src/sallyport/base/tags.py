"""Tags: texts `key=value` on RADIUS clients and network devices, such as `site=Berlin/Floor 2` or `owner=network`.

A device or client has at most one value for a key. The key is folded to lower case; the value keeps its case, and
comparisons ignore it. A value with `/` or `#` is a hierarchy: `site=Berlin` selects `site=Berlin` and
`site=Berlin/Floor 2`, but not `site=Berlin Mitte`. In memory, the tags of an object are a tuple of canonical texts,
sorted by key. To compare a wanted tag, look up its `folded_tag` in the `selectors` of the object.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from sallyport.base.errors import invalid_field
from sallyport.base.text import fold, trimmed

MAX_TAGS: Final = 32
"""Maximum number of tags of one device or client."""
MAX_VALUE: Final = 128
MAX_LEVELS: Final = 10
"""Maximum number of levels of a hierarchy, because each level is one text in memory."""
MAX_TAG: Final = 32 + 1 + MAX_VALUE
MAX_NOTE: Final = 1000
"""Maximum length of the note of a device or client."""
MAX_CHARACTERS: Final = 10_000_000
"""Maximum number of characters of the tags of a tenant's devices, and of the tags and notes of a tenant's clients. They
are in memory."""
Tags = tuple[str, ...]
"""The tags of an object in canonical form, sorted by key."""
NO_TAGS: Final[Tags] = ()
_KEY: Final = re.compile(r"[a-z0-9_.-]{1,32}")
_SEPARATOR: Final = re.compile("[/#]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MEMO: Final = 2048
_LONG_MEMO: Final = 64
"""Size of the memo for the selectors of long tags: those of 32 tags with 10 levels have up to 150 KB."""
_SHORT: Final = 256
"""Maximum number of characters of an object's tags whose selectors are in the large memo."""


def canonical_tag(text: str, field: str = "tags", *, may_be_empty: bool = False) -> str:
    """Return a tag in canonical form: the key in lower case, no blanks around the value. Raises Invalid.

    field: the name of the field in the error. may_be_empty: whether the value may be empty. A change removes such a
    key.
    """
    key, sign, value = text.partition("=")
    key, value = key.strip().lower(), trimmed(value)
    if not sign or not _KEY.fullmatch(key):
        wanted = "must be KEY=VALUE, with a key of 1 to 32 letters (a to z), digits, `-`, `_` and `.`"
        raise invalid_field(field, wanted)
    if not may_be_empty and not value:
        raise invalid_field(field, "must have a value after the `=`; only a change may have none")
    if len(value) > MAX_VALUE:
        raise invalid_field(field, f"must have at most {MAX_VALUE} characters after the `=`")
    if _CONTROL.search(value):
        raise invalid_field(field, "must be text without control characters")
    if len(_SEPARATOR.findall(fold(value))) >= MAX_LEVELS:
        raise invalid_field(field, f"must have at most {MAX_LEVELS} levels, which `/` or `#` divide")
    return f"{key}={value}"


def canonical_tags(texts: Iterable[str], field: str = "tags") -> Tags:
    """Return tags in canonical form, sorted by key. Raises Invalid if a tag is wrong, if two tags have one key and
    different values, or if there are over MAX_TAGS tags."""
    return _sorted((canonical_tag(text, field) for text in texts), field)


def _sorted(tags: Iterable[str], field: str, most: int = MAX_TAGS) -> Tags:
    found = dict[str, str]()
    for tag in tags:
        key = key_of(tag)
        if found.setdefault(key, tag) != tag:
            raise invalid_field(field, "must have each key once")
        if len(found) > most:
            raise invalid_field(field, f"must have at most {most} tags")
    return tuple(found[key] for key in sorted(found))


def changed_tags(present: Tags, given: Iterable[str], field: str = "tags") -> Tags:
    """Return the tags after a change. The given tags replace those with the same keys; `KEY=` removes the tag of a key.
    Raises Invalid; see `canonical_tags`. A change may have twice MAX_TAGS tags: it may remove all tags and set as many
    with other keys."""
    values = _sorted((canonical_tag(text, field, may_be_empty=True) for text in given), field, 2 * MAX_TAGS)
    keys = {key_of(each) for each in values}
    kept = [each for each in present if key_of(each) not in keys]
    return _sorted([*kept, *(each for each in values if value_of(each))], field)


def key_of(tag: str) -> str:
    """Return the key of a canonical tag."""
    return tag.partition("=")[0]


def value_of(tag: str) -> str:
    """Return the value of a canonical tag."""
    return tag.partition("=")[2]


def value_for(tags: Tags, key: str) -> str:
    """Return the value that an object's tags have for a key, or an empty text."""
    return next((value_of(tag) for tag in tags if key_of(tag) == key), "")


def effective_tags(own: Tags, inherited: Tags) -> Tags:
    """Return the tags of an object that takes over tags: its own, and the inherited ones with other keys."""
    if not own or not inherited:
        return own or inherited
    return _effective(own, inherited)


@lru_cache(_MEMO)
def _effective(own: Tags, inherited: Tags) -> Tags:
    keys = {key_of(tag) for tag in own}
    return tuple(sorted([*own, *(tag for tag in inherited if key_of(tag) not in keys)], key=key_of))


def folded_tag(tag: str) -> str:
    """Return a tag in the form for comparison. The value is folded by itself, because `=` and a combining mark may
    become one character."""
    key, _, value = tag.partition("=")
    return f"{key.lower()}={fold(value)}"


def selectors(tags: Tags) -> frozenset[str]:
    """Return the folded texts that select an object with these tags: each tag, and each beginning of its value that
    ends before a `/` or `#`. A wanted tag selects the object if its `folded_tag` is one of them."""
    return _selectors(tags) if sum(map(len, tags)) <= _SHORT else _long_selectors(tags)


def _find_selectors(tags: Tags) -> frozenset[str]:
    found = set[str]()
    for tag in map(folded_tag, tags):
        found.add(tag)
        start = tag.index("=") + 1
        found.update(tag[: mark.start()].rstrip() for mark in _SEPARATOR.finditer(tag, start + 1))
    return frozenset(found)


_selectors = lru_cache(_MEMO)(_find_selectors)
_long_selectors = lru_cache(_LONG_MEMO)(_find_selectors)


def is_selected(tags: Tags, folded: str) -> bool:
    """Return whether a wanted tag selects an object with these tags, as `selectors` does, but without a memo: for lists
    of many objects. folded: the wanted tag as `folded_tag` returns it."""
    key = folded.partition("=")[0] + "="
    for tag in tags:
        if tag.startswith(key):
            own = folded_tag(tag)
            return own == folded or (own.startswith(folded) and own[len(folded) :].lstrip()[:1] in ("/", "#"))
    return False


def as_object(tags: Iterable[str]) -> dict[str, str]:
    """Return tags as the object that answers have."""
    return {key: value for key, _, value in (tag.partition("=") for tag in tags)}


def as_texts(tags: Mapping[str, str]) -> list[str]:
    """Return the tags of an object, each as KEY=VALUE."""
    return [f"{key}={value}" for key, value in tags.items()]


def as_stored(tags: Tags) -> str:
    """Return tags as one text for the store."""
    return "\n".join(tags)


def of_store(text: str) -> Tags:
    """Return the tags of a text of the store."""
    return tuple(text.split("\n")) if text else NO_TAGS
