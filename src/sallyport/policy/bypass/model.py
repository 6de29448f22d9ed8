"""The stations of MAC authentication bypass in the interface."""

from typing import Annotated

from pydantic import AfterValidator, Field

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.policy.rules.match import station_key
from sallyport.web.paging import Paged
from sallyport.web.scope import InDomain, Many, Text

MAX_STATIONS = 100_000
"""Of a domain: all of them are in memory."""
MOST = 1000
"""In one call."""
DIGITS = 12


def mac_key(text: str) -> str:
    """A MAC address, however it is written, as 12 hex digits in lower case; empty for what is none."""
    key = station_key(text)
    return key if len(key) == DIGITS and all(digit in "0123456789abcdef" for digit in key) else ""


def written(key: str) -> str:
    """A MAC address for a person: aa:bb:cc:dd:ee:ff."""
    return ":".join(key[at : at + 2] for at in range(0, DIGITS, 2))


def spellings(key: str) -> list[str]:
    """The ways in which NAS write an address, in lower case."""
    pairs, words = [key[at : at + 2] for at in range(0, DIGITS, 2)], [key[at : at + 4] for at in range(0, DIGITS, 4)]
    return [key, ":".join(pairs), "-".join(pairs), ".".join(words), "-".join(words), f"{key[:6]}-{key[6:]}"]


def _mac(value: str) -> str:
    key = mac_key(value)
    if not key:
        raise unfit("a MAC address")
    return key


Mac = Annotated[Text, AfterValidator(_mac)]
Stations = Annotated[Many[Mac], Field(min_length=1, max_length=MOST)]


class AddBypassStation(InDomain):
    """Body of AddBypassStation: one MAC address or several, written in any way. name: of what they are."""

    station: Stations
    name: Text = ""


class DeleteBypassStation(InDomain):
    """Body of DeleteBypassStation: one or several, all or none."""

    station: Stations


class ListBypassStations(InDomain, Paged):
    """Body of ListBypassStations. search: a part of the address, written in any way, or of the name."""

    search: Text = ""


class StationEntry(Model):
    """A station on the list. addedAt: ISO 8601 UTC."""

    station: str
    name: str
    addedAt: str


class StationList(Model):
    """Answer of ListBypassStations, in the order in which they were added."""

    stations: list[StationEntry]
    totalCount: int
