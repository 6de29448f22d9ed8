"""Warn an admin about users, groups and RADIUS clients in a rule that do not exist.

The messages are warnings and not errors, because the next import may add the missing names. Users and groups are
compared with the domain's endpoint users and groups, and with its imported directories. If another server checks the
passwords and nothing was imported, the names are not compared. A warning contains the number of the entry in the rule,
and the most similar existing name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from sallyport.areas.directory.stored import repo as directories
from sallyport.areas.directory.stored.repo import inhabited
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.policy.rules import repo
from sallyport.areas.policy.rules.index import network_of
from sallyport.areas.policy.rules.rule import Given
from sallyport.base.mac import station_key
from sallyport.base.text import fold
from sallyport.store.model import Store, Tx

MAX_WARNINGS: Final = 20
MAX_COMPARED: Final = 200
MAX_COMPARED_LENGTH: Final = 64
"""Maximum length of names that are compared. The time of a comparison is quadratic: 200 names of 64 characters take 0.2
s."""
_MAC: Final = re.compile("[0-9a-f]{12}")
CLOSE: Final = 0.7
MAX_SUGGESTED: Final = 5

Suggest = Callable[[str], Iterable[str]]
"""A function that returns existing names that resemble a given case-folded name."""


class Names:
    """The existing users, groups and RADIUS clients of all domains.

    domain: a function that returns the domain of an id. clients: a function that returns the names of a tenant's RADIUS
    clients by folded name; a worker thread calls it.
    """

    def __init__(
        self, store: Store, domain: Callable[[int], Domain], clients: Callable[[int], Mapping[str, str]]
    ) -> None:
        self._store = store
        self._domain = domain
        self._clients = clients

    async def unknown(self, domain_id: int, fields: Given) -> list[str]:
        """Return a warning for each user, group and client in the fields that does not exist. Raises StoreError."""
        domain, given = self._domain(domain_id), fields.conditions()
        users, groups, clients = (given.get(name, ()) for name in ("users", "groups", "clients"))
        odd = _odd_stations(given.get("stations", ()))
        if not (users or groups or clients):
            return odd

        def query(tx: Tx) -> list[str]:
            warnings = list(odd)
            if (users or groups) and (domain.first_factor is FirstFactor.LOCAL or domain_id in inhabited(tx)):
                warnings += _warnings(
                    "users", "user", users, lambda key: _has_user(tx, domain, key), _users(tx, domain)
                )
                known = repo.groups(tx, domain_id) if groups else {}
                warnings += _warnings("groups", "group", groups, known.__contains__, _near(known))
            named = self._clients(domain.tenant_id) if clients else {}

            def is_client(key: str) -> bool:
                return key in named or network_of(key) is not None

            return warnings + _warnings("clients", "RADIUS client", clients, is_client, _near(named))

        return await self._store.search(query)


def _odd_stations(stations: tuple[str, ...]) -> list[str]:
    """Return a warning for each station that is neither a MAC nor an IP address. The station may be correct, because
    some NAS send a phone number."""
    odd = [
        number
        for number, each in enumerate(stations, 1)
        if not _MAC.fullmatch(station_key(each)) and network_of(each.strip()) is None
    ]
    return [
        f"stations: entry {number}: neither a MAC nor an IP address; it only matches a Calling-Station-Id with "
        "exactly this text"
        for number in odd[:MAX_WARNINGS]
    ]


def _warnings(
    field: str, kind: str, entries: tuple[str, ...], is_known: Callable[[str], bool], suggest: Suggest
) -> list[str]:
    place = "this tenant" if field == "clients" else "this domain"
    found: list[str] = []
    unknown = 0
    for number, entry in enumerate(entries, 1):
        key = fold(entry.strip())
        if is_known(key):
            continue
        unknown += 1
        if unknown <= MAX_WARNINGS:
            near = _nearest(key, suggest) if unknown <= MAX_SUGGESTED else ""
            found.append(f"{field}: entry {number}: no such {kind} in {place} yet" + (near and f"; nearest: {near}"))
    if unknown > MAX_WARNINGS:
        found.append(f"{field}: {unknown - MAX_WARNINGS} more entries do not exist yet")
    return found


def _nearest(key: str, suggest: Suggest) -> str:
    if len(key) > MAX_COMPARED_LENGTH:
        return ""
    known = {fold(name): name for name in suggest(key) if len(name) <= MAX_COMPARED_LENGTH}
    close = get_close_matches(key, known, 1, CLOSE)
    return known[close[0]] if close else ""


def _near(known: Mapping[str, str]) -> Suggest:
    """Return a function that suggests names similar to a given name. A suggested name has a similar length, and either
    the same first letter or the same end.

    known: the names as they were written. The keys are their case-folded forms.
    """

    def suggest(key: str) -> Iterator[str]:
        left = MAX_COMPARED
        for each, name in known.items():
            is_alike = each[:1] == key[:1] or each[-2:] == key[-2:]
            if is_alike and abs(len(each) - len(key)) <= 2 and left:
                left -= 1
                yield name

    return suggest


def _has_user(tx: Tx, domain: Domain, key: str) -> bool:
    if domain.first_factor is FirstFactor.LOCAL and repo.has_endpoint_user(tx, domain.id, key):
        return True
    keys = [key, *(f"{key}@{realm}" for realm in domain.realm_keys)]
    return bool(directories.principals(tx, domain.id, keys))


def _users(tx: Tx, domain: Domain) -> Suggest:
    """Return a function that suggests names of users of a domain. The suggested names begin like the given name."""

    def suggest(key: str) -> Iterator[str]:
        for length in dict.fromkeys((len(key) - 1, len(key) // 2, 1)):
            if length > 0:
                local = domain.first_factor is FirstFactor.LOCAL
                yield from repo.users_like(tx, domain.id, key, length, MAX_COMPARED // 4, local=local)

    return suggest
