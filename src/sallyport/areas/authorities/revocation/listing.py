"""The revocation lists of authorities as the operations show them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from sallyport.areas.authorities.revocation.lists import RevocationList
from sallyport.areas.authorities.revocation.sources import Source
from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso
from sallyport.metrics import ListFacts

SOON: Final = 0.05
"""The part of a list's validity before its end in which its successor is overdue. AD CS publishes the next list when a
tenth is left."""


class ListState(StrEnum):
    """The state of a revocation list."""

    VALID = "valid"
    DUE = "due"
    EXPIRED = "expired"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RevocationListEntry:
    """A revocation list of an authority. The times are in microseconds; None if there is no list yet."""

    authority_id: Annotated[int, Wire("Id of the authority.", "authorityId", title="Id")]
    address: Annotated[str, Wire("Address of the list.")]
    state: Annotated[
        ListState,
        Wire(
            "valid; due (it expires soon, and there is no newer one); expired (certificates on it are still refused, "
            "and the state of others is unknown); missing (it was never fetched)."
        ),
    ]
    is_delta: Annotated[bool, Wire("Whether it is a delta list, with the changes of another list.", "delta")]
    number: Annotated[str, Wire("CRL number; empty if it has none.", "crlNumber", title="Number")]
    this_update: Annotated[int | None, Wire("When it was issued, ISO 8601 UTC.", "thisUpdate", iso, title="Issued")]
    next_update: Annotated[int | None, Wire("When it expires, ISO 8601 UTC.", "nextUpdate", iso, title="Expires")]
    entries: Annotated[int, Wire("Number of revoked certificates.")]
    octets: Annotated[int, Wire("Size in octets.", title="Size")]
    checked_at: Annotated[int | None, Wire("When it was last fetched, ISO 8601 UTC.", "checkedAt", iso)]
    next_fetch: Annotated[int | None, Wire("When it is fetched next, ISO 8601 UTC.", "nextFetch", iso)]
    error: Annotated[str, Wire("Why the last fetch brought no list; empty if it brought one.")]


def shown_list(source: Source, now: int) -> RevocationListEntry:
    """Return a list as operations show it. now: microseconds."""
    row, found = source.row, source.list
    return RevocationListEntry(
        row.authority_id,
        row.address,
        _state(found, now),
        found is not None and found.base is not None,
        "" if found is None or found.number is None else str(found.number),
        None if found is None else found.this_update,
        None if found is None else found.next_update,
        0 if found is None else found.entries.count,
        0 if found is None else found.size,
        row.checked_at or None,
        row.next_at or None,
        row.error,
    )


def _state(found: RevocationList | None, now: int) -> ListState:
    if found is None:
        return ListState.MISSING
    left = found.next_update - now
    if left <= 0:
        return ListState.EXPIRED
    return ListState.DUE if left < (found.next_update - found.this_update) * SOON else ListState.VALID


def facts_of(source: Source, now: int) -> ListFacts:
    """Return a list for the metrics. now: microseconds."""
    found = source.list
    return ListFacts(
        source.row.authority_id,
        0.0 if found is None else found.this_update / SECOND,
        0.0 if found is None else found.next_update / SECOND,
        0 if found is None else found.size,
        source.row.failures,
        _state(found, now).value,
        found is not None and found.base is not None,
    )
