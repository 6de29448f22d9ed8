"""Warnings about authorities: those that may speak for the same users, and trust anchors that expire."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sallyport.areas.authorities.authority import Authority, AuthorityTable
from sallyport.base.clock import SECOND, iso
from sallyport.base.text import folded

SOON_US: Final = 30 * 86_400 * SECOND
"""Time before the expiry of a trust anchor from which on there is a warning, in microseconds."""


def warnings_of(authority: Authority, table: AuthorityTable, now: int, is_local: Callable[[int], bool]) -> list[str]:
    """Return the warnings about an authority. table: all authorities. now: the time in microseconds. is_local: whether
    a domain has the first factor local, so that all its realms name the same users."""
    found = [] if authority.domain_ids else ["it belongs to no domain, so nobody can log in with its certificates"]
    for each in authority.anchors:
        if each.until < now + SOON_US:
            verb = "has expired on" if each.until < now else "expires on"
            found.append(f"the certificate of {each.subject} {verb} {iso(each.until)[:10]}: add the renewed one")
    if authority.realms and any(map(is_local, authority.domain_ids)):
        found.append(
            "its realms tell no users apart in a domain with the first factor local, where all realms name the same "
            "users; give it groups or one kind"
        )
    found += _same_subjects(authority, table)
    names = {
        each.name
        for domain_id in authority.domain_ids
        for each in table.by_domain.get(domain_id, ())
        if each.id != authority.id and overlap(authority, each, by_realm=not is_local(domain_id))
    }
    if names:
        found.append(
            f"it may speak for the same users as {', '.join(sorted(names))}: each of them can let the users of the "
            "other in; give them different kinds, realms, groups or SID prefixes"
        )
    return found


def _same_subjects(authority: Authority, table: AuthorityTable) -> Iterator[str]:
    """Yield a warning about each authority of a domain that has a certificate with the same subject as this one. Their
    keys differ, because the same key is refused."""
    subjects = {each.subject for each in authority.anchors}
    others = {each.id: each for domain_id in authority.domain_ids for each in table.by_domain.get(domain_id, ())}
    for other in others.values():
        shared = subjects.intersection(each.subject for each in other.anchors)
        if other.id != authority.id and shared:
            yield (
                f"it has the same subject as {other.name}, and another key: {min(shared)}; client certificates without "
                "an AuthorityKeyIdentifier may be refused"
            )


def overlap(one: Authority, other: Authority, *, by_realm: bool = True) -> bool:
    """Return whether two authorities may speak for the same users of a domain. by_realm: whether the realms of the
    domain tell users apart. Users may be members of several groups,
    but different groups count as different users, because an admin has told them apart."""
    return (
        not set(one.kinds).isdisjoint(other.kinds)
        and not (by_realm and not _meet(one.realms, other.realms))
        and _meet(one.groups, other.groups)
        and _meet_prefixes(one.sid_prefixes, other.sid_prefixes)
    )


def _meet(one: Sequence[str], other: Sequence[str]) -> bool:
    return not one or not other or not folded(one).isdisjoint(folded(other))


def _meet_prefixes(one: Sequence[str], other: Sequence[str]) -> bool:
    if not one or not other:
        return True
    return any(f"{a}-".startswith(f"{b}-") or f"{b}-".startswith(f"{a}-") for a in one for b in other)
