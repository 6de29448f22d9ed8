"""Which attribute of a directory becomes which field of a person.

A directory has one mapping, and each of its groups may have one for its own people, which goes before it; of several
groups' the one of the lower id. What neither names is as in DEFAULTS; the address is then
the one that directories have themselves, and the username the login name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.directory.imports.lines import digest_of

FIELDS: Final = (
    "email", "chat", "username", "department", "group", "subgroup", "roles", "location", "region", "primaryApp", "fax",
)  # fmt: skip
ALIASES: Final = {"slack": "chat"}
"""What is accepted for a field's name (decisions.md, Directory and agents)."""
DEFAULTS: Final[Mapping[str, str]] = {
    "department": "department",
    "location": "l",
    "region": "st",
    "fax": "facsimiletelephonenumber",
}
ATTRIBUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,254}|[0-9]+(?:\.[0-9]+){1,40}", re.ASCII)
LONGEST: Final = 255
"""Characters of a username, an address and a name that is shown; a field has up to ten times as many."""
_SHOWN: Final = ("displayname", "cn", "gecos", "name")
_UPN: Final = "userprincipalname"
_EMAIL: Final = ("mail", "email", "rfc822mailbox")
_OTHERS: Final = frozenset(FIELDS) - {"email", "username"}

Attributes = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """A mapping as it is set: the attribute, in lower case, of each field that it names. digest: tells it from
    another."""

    attributes: Mapping[str, str]
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(sorted(self.attributes.items())))

    def over(self, other: "FieldMapping") -> "FieldMapping":
        """This one, and what only the other names."""
        return FieldMapping({**other.attributes, **self.attributes})


@dataclass(frozen=True, slots=True)
class Fields:
    """What a person's attributes come to. username: "" where the mapping names none, or the person has none."""

    username: str
    display_name: str
    email: str
    upn: str
    others: Mapping[str, str]


def fields_of(attributes: Attributes, mapping: FieldMapping) -> Fields:
    """The fields of a person. attributes: by name in lower case."""
    chosen = {**DEFAULTS, **mapping.attributes}
    own = mapping.attributes.get("email")
    username = _first(attributes, (chosen.get("username", ""),)).strip()
    others = {
        field: ", ".join(attributes.get(chosen[field], ()))[: 10 * LONGEST] for field in chosen if field in _OTHERS
    }
    return Fields(
        username=username if len(username) <= LONGEST and username.isprintable() else "",
        display_name=_first(attributes, _SHOWN)[:LONGEST],
        email=_first(attributes, (own,) if own else _EMAIL)[:LONGEST],
        upn=_first(attributes, (_UPN,))[:LONGEST],
        others={field: value for field, value in others.items() if value},
    )


def _first(attributes: Attributes, names: Iterable[str]) -> str:
    return next((values[0] for name in names if (values := attributes.get(name))), "")
