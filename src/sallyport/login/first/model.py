"""What a first factor that asks somebody else is to the login path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from pydantic import AfterValidator, ConfigDict

from sallyport.base.model import Model
from sallyport.base.validation import unfit

if TYPE_CHECKING:
    from sallyport.base.clock import Clock
    from sallyport.base.errors import FieldError
    from sallyport.login.first.winbind.helpers import Helpers
    from sallyport.login.login import Login, Reason
    from sallyport.metrics import UpstreamMetrics
    from sallyport.outgoing.egress import Egress


Tell: TypeAlias = Callable[[str], None]
"""Hears the steps of a check."""


def _digits(value: int) -> int:
    if value not in CODE_LENGTHS:
        raise unfit("6 or 8")
    return value


CODE_LENGTHS: Final = (6, 8)
CodeDigits: TypeAlias = Annotated[int, AfterValidator(_digits)]
"""How long a code is that stands behind a password which can be tried once."""


class Fields(Model):
    """What a kind of first factor is configured with, in the interface's spelling; a secret is a SecretStr, and never
    returned. A field that nobody knows is refused: a misspelled one would go unnoticed."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def refused(self, host: Host) -> FieldError | None:
        """Which field the service does not lend a domain what it needs for; None: all is there."""
        return None


@dataclass(frozen=True, slots=True)
class Host:
    """What the service lends a first factor. domain: the name of the domain that it serves. hidden: (vendor, type) of
    the attributes that are hidden in answers (`radius.salted`). ntlm_auth: asks winbind; None where the domain's
    organization may not."""

    domain_id: int
    domain: str
    egress: Egress
    clock: Clock
    upstream: UpstreamMetrics
    hidden: Mapping[tuple[int, int], int]
    ntlm_auth: Helpers | None


class Checker(Protocol):
    """One domain's first factor."""

    name: ClassVar[str]
    fields: ClassVar[type[Fields]]

    def __init__(self, fields: Fields, host: Host) -> None:
        """Keep the configuration; connect to nothing yet."""

    async def check(self, login: Login, takes_code: Callable[[], bool], tell: Tell) -> Reason:
        """Whether the credentials are right: Reason.NONE. What was found beside it goes to `login.found`.

        takes_code: whether a code may stand behind a PAP password; where one was split off, it goes to `login.code`.
        tell: hears each step, for an admin who tries it out; no secrets. Never raises for what is wrong at the other
        end: that is a reason too. May be cancelled. PacketError: the password field is malformed.
        """

    async def run(self) -> None:
        """What goes on in the background, until cancelled: probes, pools. `check` may be called before it runs."""


@runtime_checkable
class AtOnce(Checker, Protocol):
    """A checker that needs no task for a login."""

    def begin(self, login: Login, takes_code: Callable[[], bool], done: Callable[[Reason], None]) -> bool:
        """Ask; `done` hears later what `check` would have returned. False: `check` has to be called, and `done` hears
        nothing. PacketError as `check`."""


def silent(_step: str) -> None:
    """Nobody listens."""
