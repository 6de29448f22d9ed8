"""Field mappings. A mapping says which attributes of the directory fill each field of a person.

A directory has one mapping. A group may have its own mapping, which takes precedence for the people of the group. If a
person is in several groups with a mapping, the mapping of the group with the lowest id takes precedence. If a field has
no mapping, a default applies. The defaults are in DEFAULTS. Besides, the email field has the directory's mail address,
and the username is the login name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.areas.directory.entry.dn import pairs_of
from sallyport.areas.directory.imports.lines import digest_of
from sallyport.base.text import trimmed

FIELDS: Final = (
    "email", "chat", "username", "department", "group", "subgroup", "roles", "location", "region", "primaryApp", "fax",
)  # fmt: skip
ALIASES: Final = {"slack": "chat"}
"""Other spellings of a field's name."""
DEFAULTS: Final[Mapping[str, str]] = {
    "department": "department",
    "location": "l",
    "region": "st",
    "fax": "facsimiletelephonenumber",
}
ATTRIBUTE: Final = re.compile(
    r"(?=.{1,255}$)(?:[A-Za-z][A-Za-z0-9_-]*|[0-9]+(?:\.[0-9]+){1,40})(?:;[A-Za-z0-9-]+){0,8}", re.ASCII
)
"""Matches an attribute's name or OID, with options (RFC 4512 section 2.5)."""
MAX_TAKEN: Final = 10
"""Maximum number of attributes of one field."""
MAX_MAPPED: Final = 200
"""Maximum number of attributes in all mappings of a directory and its groups. With the attributes that are always read,
an entry then has at most 384 attributes, the limit in `reading/answers.py`."""
MAX_LENGTH: Final = 255
"""Maximum length of a username, an address and a display name, in characters. Other fields may be ten times as long."""
_SHOWN: Final = ("displayname", "cn", "gecos", "name")
_UPN: Final = ("userprincipalname",)
_EMAIL: Final = ("mail", "email", "rfc822mailbox")
_MEMBERSHIP: Final = "memberof"
_OTHERS: Final = frozenset(FIELDS) - {"email", "username"}

Attributes = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """A field mapping.

    attributes: for each field, the attributes in the form of `entry.attribute_key`, separated by commas. digest: the
    digest of all attributes. username, email: the attributes of these fields. others: (field, attributes) for each
    other field.
    """

    attributes: Mapping[str, str]
    digest: bytes = field(init=False)
    username: Sequence[str] = field(init=False, compare=False)
    email: Sequence[str] = field(init=False, compare=False)
    others: Sequence[tuple[str, Sequence[str]]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        taken = {name: attributes_in(those) for name, those in {**DEFAULTS, **self.attributes}.items()}
        others = [(name, those) for name, those in taken.items() if name in _OTHERS]
        for name, value in (
            ("digest", digest_of(sorted(self.attributes.items()))),
            ("username", taken.get("username", ())),
            ("email", taken.get("email") or _EMAIL),
            ("others", others),
        ):
            object.__setattr__(self, name, value)

    def over(self, other: "FieldMapping") -> "FieldMapping":
        """Return a mapping with the fields of both mappings. If both mappings have a field, this mapping takes
        precedence."""
        return FieldMapping({**other.attributes, **self.attributes})


@dataclass(frozen=True, slots=True)
class PersonFields:
    """The fields of a person. username: it is empty if no mapping sets the username, or if the person has no valid
    value for it."""

    username: str
    display_name: str
    email: str
    upn: str
    others: Mapping[str, str]


def attributes_in(attributes: str) -> list[str]:
    """Return the attributes of one field, which are separated by commas."""
    return [each for each in attributes.split(",") if each]


def fields_of(attributes: Attributes, mapping: FieldMapping) -> PersonFields:
    """Return the fields of a person. attributes: the values of each attribute. The attribute names are in the form of
    `entry.attribute_key`.

    The username, the address and the display name are each the first value of their attributes. Every other field
    contains all values of its attributes.
    """
    username = trimmed(_first(attributes, mapping.username))
    others = {
        name: ", ".join(values)[: 10 * MAX_LENGTH]
        for name, taken in mapping.others
        if (values := _values(attributes, taken))
    }
    return PersonFields(
        username=username if len(username) <= MAX_LENGTH and username.isprintable() else "",
        display_name=_first(attributes, _SHOWN)[:MAX_LENGTH],
        email=_first(attributes, mapping.email)[:MAX_LENGTH],
        upn=_first(attributes, _UPN)[:MAX_LENGTH],
        others={field: value for field, value in others.items() if value},
    )


def _first(attributes: Attributes, names: Sequence[str]) -> str:
    for name in names:
        if name in attributes and (values := _values(attributes, (name,))):
            return values[0]
    return ""


def _values(attributes: Attributes, names: Sequence[str]) -> list[str]:
    """Return the values of attributes. If a value of memberOf is the distinguished name of a group, return only the
    group's name."""
    found = list[str]()
    for name in names:
        if name in attributes:
            found += map(_own_name, attributes[name]) if name == _MEMBERSHIP else attributes[name]
    return found


def _own_name(dn: str) -> str:
    return next(pairs_of(dn), ("", dn))[1]
