"""A role, and the choice of its set of reply attributes for a NAS."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sallyport.areas.policy.rules.rule import Reply
from sallyport.base.tags import NO_TAGS, Tags, folded_tag, selectors
from sallyport.base.wire import JSON

MAX_ROLES: Final = 200
"""Maximum number of roles in a domain."""
MAX_SETS: Final = 100
"""Maximum number of sets in a role."""
MAX_CHARACTERS: Final = 1 << 20
"""Maximum number of characters in all roles of a domain. The limit exists because all roles are in memory."""
MAX_SET_OCTETS: Final = 1024
"""Maximum length of an encoded set. A packet has 4096 octets, of which the attributes of the rule may take 2048."""
MAX_NAME: Final = 64


class RoleSource(StrEnum):
    """The reason for the choice of a role's set: the tag of the NAS, its product, or neither. `none`: the role has no
    set for the NAS."""

    TAG = "tag"
    PRODUCT = "product"
    DEFAULT = "default"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class GivenRole:
    """The role that a login gets. name: the name of the role. source: the choice of the set. attributes: the encoded
    attributes of the set."""

    name: str
    source: RoleSource
    attributes: bytes = b""


@dataclass(frozen=True, slots=True)
class ReplySet:
    """A set of reply attributes, as an admin has written it.

    product: the product that gets the set; empty for all. tag: the tag `KEY=VALUE` that selects the set; empty for
    none. A set has a product, or a tag, or neither: then it is the default set. attributes: the encoded attributes.
    """

    product: str = ""
    tag: str = ""
    vlan: str = ""
    reply_attributes: tuple[Reply, ...] = ()
    attributes: bytes = b""

    @property
    def key(self) -> tuple[str, str]:
        """The tag and the product, case-folded. A role has at most one set for each."""
        return self.tag and folded_tag(self.tag), self.product.casefold()

    @property
    def source(self) -> RoleSource:
        """The reason for which the set is chosen."""
        return RoleSource.TAG if self.tag else RoleSource.PRODUCT if self.product else RoleSource.DEFAULT

    def as_json(self) -> dict[str, JSON]:
        """Return the fields as answers and the audit trail have them."""
        return {
            "product": self.product,
            "tag": self.tag,
            "vlan": self.vlan,
            "replyAttributes": [{"name": each.name, "value": each.value} for each in self.reply_attributes],
        }


class Role:
    """A role in memory. sets: its sets, the default set first. has_tags: whether a set is selected by a tag."""

    __slots__ = ("_by_product", "_by_tag", "_default", "_none", "domain_id", "has_tags", "name", "sets")

    def __init__(self, domain_id: int, name: str, sets: Iterable[ReplySet]) -> None:
        self.domain_id = domain_id
        self.name = name
        self.sets = tuple(sorted(sets, key=lambda each: each.key))
        self._none = GivenRole(name, RoleSource.NONE)
        given = {each.key: GivenRole(name, each.source, each.attributes) for each in self.sets}
        self._by_product: Mapping[str, GivenRole] = {
            product: found for (tag, product), found in given.items() if not tag
        }
        self._default = self._by_product.get("", self._none)
        by_tag = [(tag, found) for (tag, _), found in given.items() if tag]
        self._by_tag = sorted(by_tag, key=lambda each: (-len(each[0]), each[0]))
        self.has_tags = bool(by_tag)

    def given(self, product: str, tags: Tags = NO_TAGS) -> GivenRole:
        """Return what a NAS gets. product: the name of its product in any case; empty if unknown. tags: its tags. If
        several tags have a set, the longest decides."""
        if tags and self.has_tags:
            own = selectors(tags)
            for tag, found in self._by_tag:
                if tag in own:
                    return found
        return self._by_product.get(product.casefold(), self._default)

    def with_set(self, new: ReplySet) -> "Role":
        """Return a copy in which the set for the tag or product is replaced or added."""
        return Role(self.domain_id, self.name, (*self.without(new.key).sets, new))

    def without(self, key: tuple[str, str]) -> "Role":
        """Return a copy without the set of a key."""
        return Role(self.domain_id, self.name, (each for each in self.sets if each.key != key))

    def as_json(self) -> dict[str, JSON]:
        """Return each set by what selects it, for the audit trail."""
        return {each.tag or each.product or RoleSource.DEFAULT.value: each.as_json() for each in self.sets}


def written(sets: Iterable[ReplySet]) -> str:
    """Return sets as the store has them."""
    return json.dumps([{**each.as_json(), "encoded": each.attributes.hex()} for each in sets])


def read(text: str) -> list[ReplySet]:
    """Parse sets that `written` has made."""
    return [
        ReplySet(
            each["product"],
            each["tag"],
            each["vlan"],
            tuple(Reply(one["name"], one["value"]) for one in each["replyAttributes"]),
            bytes.fromhex(each["encoded"]),
        )
        for each in json.loads(text)
    ]
