"""The protocol of first factors that ask another server, and the parts of the service that they may use."""

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
"""A function that reports a step of a check to an admin. It gets the text of the step."""


CODE_LENGTHS: Final = (6, 8)
"""The possible numbers of digits of a code that is appended to the password."""


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the service that a first factor may use.

    domain: the name of the domain. hidden: the encrypted attributes in answers, by (vendor, type), see `radius.salted`.
    ntlm_auth: the processes that ask winbind; None if the domain's organization may not use it.
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
        """Check the credentials, and set `login.found`. Returns Reason.NONE if they are correct.

        takes_code: returns whether a code may follow a PAP password; the check then sets `login.code`. tell: called
        with each step, without secrets, for an admin's trial. A failure of the other server is returned as a reason,
        not raised. The call may be cancelled. Raises PacketError if the password field is malformed.
        """

    async def run(self) -> None:
        """Run the background work, such as probes and pools, until cancelled. `check` may be called before `run`."""


@runtime_checkable
class AtOnce(Checker, Protocol):
    """A checker that can check a login without a task."""

    def begin(self, login: Login, takes_code: Callable[[], bool], done: Callable[[Reason], None]) -> bool:
        """Start a check. `done` is called later with its result. Return False if the check was not started; then `done`
        is never called, and the caller must use `check`. Raises PacketError, see `check`."""


def silent(_step: str) -> None:
    """Ignore a step."""
