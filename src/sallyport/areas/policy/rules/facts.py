"""The facts of a login that login rules compare, and the class of a condition.

**Claims.** Some facts are only claims of the sender: the SSID, the port, other attributes, the address of the endpoint,
the method that a forwarder tells, and the tags of a device that is known only by a name or address in the request.
A host between the sender and the service can change a request without a signature, and each host in the network of a
RADIUS client can send any facts. So in a request that is not signed, or that comes from such a client, a claim can
block a login or require a second factor, but cannot exempt the login from it.
"""

import zoneinfo
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final, Generic, TypeVar

from sallyport.areas.policy.rules.index import Index, address_of, holding, naming
from sallyport.base.clock import SECOND
from sallyport.base.mac import DIGITS, MAX_LENGTH, mac_key, station_key
from sallyport.base.tags import Tags, selectors
from sallyport.base.text import fold, fold_name, folded
from sallyport.radius.eap.certificate_names import MORE

Values = tuple[str | int, ...]
"""The values of a condition in a rule. Only Service-Types are numbers."""
NO_CLAIMS: Final = frozenset[str]()
FactT = TypeVar("FactT")


class AccountKind(StrEnum):
    """A kind of account: a person, a computer with its own account or certificate, a station that is admitted by its
    MAC address, or a station that asks for that and is not on the list of its domain."""

    USER = "user"
    MACHINE = "machine"
    STATION = "station"
    UNKNOWN = "unknown"


_STATIONS: Final = (AccountKind.STATION, AccountKind.UNKNOWN)
_OF_STATION: Final = "station "
"""The beginning of the name of a station, so that a person with the same name is somebody else. It has a blank, as no
MAC address has."""


def user_names(values: Iterable[str]) -> frozenset[str]:
    """Return the names that a rule compares: the case-folded values, and the name of the station for each MAC address
    in any notation."""
    names = folded(tuple(values))
    keys = {mac_key(name) for name in names if DIGITS <= len(name) <= MAX_LENGTH}
    return names | {_OF_STATION + key for key in keys if key}


@lru_cache(4096)
def kind_of(user: str) -> AccountKind:
    """Return the kind of account that a user name has. Names such as `host/NAME.DOMAIN` and `NAME$` belong to Windows
    computers."""
    name = fold_name(user)
    return AccountKind.MACHINE if name.endswith("$") or name.startswith("host/") else AccountKind.USER


@dataclass(slots=True)  # not frozen, because each login makes one, and freezing takes most of the time
class Facts:
    """The facts of a login that rules compare. They are known after the first factor.

    user: the name without its realm. kind: the kind of account. names: all names of the user, case-folded, if a
    directory has several. groups, ous: the user's groups and OUs, case-folded, or None if they could not be read.
    client: the name of the RADIUS client. source: the sender's address. nas: NAS-IP-Address or NAS-IPv6-Address,
    otherwise the sender's address. product, nas_product: the products of the sender and of the NAS; `Unknown` or empty
    if unknown. medium: the medium of the NAS port; `Unknown` or empty if unknown. station: Calling-Station-Id; empty if
    absent. service_type: Service-Type; None if absent. at: the time in microseconds since 1970, UTC.

    The other facts are computed only if a rule of the domain compares them. ssid: the SSID. port: NAS-Port-Id. realm:
    the realm of the user name as it was sent. method: the authentication method, in the spelling of rules. address: the
    IP address of the user's endpoint. certificates: facts of the client certificate as texts `key=value`. attributes:
    the values of the attributes that rules name, by name; an absent attribute is missing. All of these are empty if
    unknown. tags: the tags of the device and its RADIUS client, or None if the device is unknown. claims: the fields of
    the conditions whose facts are only claims of the sender.
    """

    user: str
    kind: AccountKind
    groups: frozenset[str] | None
    ous: frozenset[str] | None
    client: str
    source: str
    nas: str
    product: str
    nas_product: str
    medium: str
    station: str
    service_type: int | None
    at: int
    names: frozenset[str] = frozenset()
    ssid: str = ""
    port: str = ""
    realm: str = ""
    method: str = ""
    address: str = ""
    certificates: tuple[str, ...] = ()
    attributes: Mapping[str, tuple[str, ...]] | None = None
    tags: Tags | None = None
    claims: frozenset[str] = NO_CLAIMS


@dataclass(frozen=True, slots=True)
class Preparation:
    """What the preparation of a rule's conditions needs.

    bit: the bit of the rule in the index. exempts: whether the rule is an `allow` rule.
    """

    index: Index
    bit: int
    exempts: bool


class Computed(Generic[FactT]):
    """A fact that is computed when it is first used. `functools.cached_property` of Python 3.11 takes a lock, which
    costs more time than most of these facts."""

    __slots__ = ("_compute", "_name")

    def __init__(self, compute: Callable[["Seen"], FactT]) -> None:
        self._compute = compute
        self._name = compute.__name__

    def __get__(self, seen: "Seen", _owner: object = None) -> FactT:
        found = seen.__dict__[self._name] = self._compute(seen)
        return found


class Seen:
    """The facts of a login in the form in which rules compare them. Each fact is computed when it is first used.

    groups, ous, tags, certificates, sender, nas, address, port, attributes: the rules, as bits, that name the fact. For
    example, `groups` has the rules that name one of the user's groups. Each is None if the fact is missing.
    """

    def __init__(self, facts: Facts, index: Index) -> None:
        self.facts = facts
        self._index = index
        self._moments: dict[str, datetime] = {}
        key = mac_key(facts.user) if facts.kind in _STATIONS else ""
        self.user = _OF_STATION + key if key else fold_name(facts.user)

    @Computed
    def groups(self) -> int | None:
        return naming(self._index.groups, self.facts.groups)

    @Computed
    def ous(self) -> int | None:
        return naming(self._index.ous, self.facts.ous)

    @Computed
    def sender(self) -> int | None:
        """The rules that name the sender's address, as bits, or None if the address is unknown."""
        address = address_of(self.facts.source)
        return None if address is None else holding(self._index.sender, address)

    @Computed
    def nas(self) -> int:
        return holding(self._index.nas, address_of(self.facts.nas))

    @Computed
    def address(self) -> int | None:
        address = address_of(self.facts.address) if self.facts.address else None
        return None if address is None else holding(self._index.addresses, address)

    @Computed
    def port(self) -> int | None:
        return self._index.ports.matching(fold(self.facts.port)) if self.facts.port else None

    @Computed
    def tags(self) -> int | None:
        return None if self.facts.tags is None else naming(self._index.tags, selectors(self.facts.tags))

    @Computed
    def certificates(self) -> int:
        return naming(self._index.certificates, folded(self.facts.certificates)) or 0

    @Computed
    def certificate_keys(self) -> frozenset[str]:
        """The keys of the facts of the client certificate, without those of which some facts are left out."""
        pairs = [fact.partition("=")[::2] for fact in self.facts.certificates]
        return frozenset(key for key, _ in pairs) - {key for more, key in pairs if more == MORE}

    @Computed
    def attributes(self) -> int:
        rules = 0
        for name, values in (self.facts.attributes or {}).items():
            if (patterns := self._index.attributes.get(name)) is not None:
                for value in folded(values):  # a request may repeat a value many hundred times
                    rules |= patterns.matching(value)
        return rules

    @Computed
    def ssid(self) -> str:
        return fold(self.facts.ssid)

    @Computed
    def realm(self) -> str:
        return fold(self.facts.realm)

    @Computed
    def client(self) -> str:
        return fold(self.facts.client)

    @Computed
    def station(self) -> str:
        return station_key(self.facts.station)

    @Computed
    def medium(self) -> str:
        return self.facts.medium.casefold()

    @Computed
    def products(self) -> tuple[str, str]:
        return self.facts.product.casefold(), self.facts.nas_product.casefold()

    def moment(self, zone: zoneinfo.ZoneInfo) -> datetime:
        """Return the time of the login in a time zone."""
        moment = self._moments.get(zone.key)
        if moment is None:
            moment = self._moments[zone.key] = datetime.fromtimestamp(self.facts.at // SECOND, zone)
        return moment


Test = Callable[[Seen], bool | None]
"""Whether a login has one of a condition's values; None if the fact is missing."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of login rules: a list of values, one of which the login must have. An empty list is no condition.

    field: the name in the API, in stored rules and in the audit trail. option: the option of the command line for one
    value. word: a word for the condition before its values. title, hint: the label and a hint in the console's form.
    choices: the values with their labels, if the form offers a choice. rank: conditions with a lower rank are tested
    first, because they cost less. prepare: returns the test of the values. has: returns the values of a login as texts,
    or None if they could not be read. may_be_none: whether a login may surely have no value. asked: the description of
    the fact as a field of a rule test, if the field is derived from the condition. asks_several: whether this field is
    a list. is_claim: whether the fact may be only a claim of the sender.
    """

    field: str
    option: str
    description: str
    word: str
    title: str
    rank: int
    prepare: Callable[[Values, Preparation], Test]
    has: Callable[[Facts], Iterable[str] | None]
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    may_be_none: bool = False
    asked: str = ""
    asks_several: bool = False
    is_claim: bool = False

    @property
    def fact(self) -> str:
        """The name of the fact in `Facts`, and as a field of a rule test."""
        return self.field if self.asks_several else self.option
