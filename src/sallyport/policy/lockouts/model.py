"""Lock-outs in the interface."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import model_validator

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.web.paging import Paged
from sallyport.web.scope import InDomain, Text


class Kind(StrEnum):
    """What is locked out."""

    USER = "user"
    STATION = "station"


class ListLockouts(InDomain, Paged):
    """Body of ListLockouts."""


class Unlock(InDomain):
    """Body of Unlock: a user or a station."""

    userName: Text = ""
    station: Text = ""

    @model_validator(mode="after")
    def _names_one(self) -> "Unlock":
        if bool(self.userName) is bool(self.station):
            raise unfit("either userName or station", "userName", "station")
        return self

    @property
    def named(self) -> tuple[Kind, str]:
        """What is to be unlocked."""
        return (Kind.USER, self.userName) if self.userName else (Kind.STATION, self.station)


class LockoutEntry(Model):
    """One that is locked out. since, until: ISO 8601 UTC. failures: how many it took."""

    kind: str
    name: str
    since: str
    until: str
    failures: int


class LockoutList(Model):
    """Answer of ListLockouts."""

    lockouts: Sequence[LockoutEntry]
    totalCount: int
