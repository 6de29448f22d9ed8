"""The protocol of a first factor that asks another server, and the parts of the service that it may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from sallyport.base.clock import Clock
    from sallyport.login.first.winbind.helpers import Helpers
    from sallyport.login.login import Login, Reason
    from sallyport.metrics import UpstreamMetrics
    from sallyport.outgoing.egress import Egress


Tell: TypeAlias = Callable[[str], None]
"""Called with each step of a check, for an admin."""


CODE_LENGTHS: Final = (6, 8)
"""Digits of a code that may stand behind a password."""


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the service that a first factor may use.

    domain: the name of the domain that it serves. hidden: (vendor, type) of the attributes that are hidden in answers
    (`radius.salted`). ntlm_auth: asks winbind; None if the domain's organization may not.
    """

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

    async def check(self, login: Login, takes_code: Callable[[], bool], tell: Tell) -> Reason:
        """Check the credentials: Reason.NONE if they are right. Sets `login.found`.

        takes_code: whether a code may follow a PAP password; the code is then set as `login.code`. tell: called with
        each step, without secrets, for an admin's trial. A failure of the other server is a reason too, never an
        exception. May be cancelled. PacketError: the password field is malformed.
        """

    async def run(self) -> None:
        """Run the background work, such as probes and pools, until cancelled. `check` may be called before."""


@runtime_checkable
class AtOnce(Checker, Protocol):
    """A checker that needs no task for a login."""

    def begin(self, login: Login, takes_code: Callable[[], bool], done: Callable[[Reason], None]) -> bool:
        """Start a check; `done` is called later with the result of `check`. False: call `check`; `done` is not called.
        PacketError as `check`."""


def silent(_step: str) -> None:
    """Ignore a step."""
