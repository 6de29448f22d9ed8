"""The protocol of first factors that ask another server, and the services that they may use."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from sallyport.areas.login.first.winbind.helpers import Helpers
    from sallyport.areas.login.login import FirstFactorResult, Login
    from sallyport.base.clock import Clock
    from sallyport.metrics import UpstreamMetrics
    from sallyport.outgoing.egress import Egress


Tell: TypeAlias = Callable[[str], None]
"""A function that reports one step of a check to an admin. Its argument is the text of the step."""


USER: Final = "{user}"
ASSERTION: Final = re.compile(r"\(([A-Za-z][A-Za-z0-9-]*)=([^()=]*\{user\}[^()]*)\)")
"""A regular expression for the comparisons in a filter that contain {user}. It captures the attribute and the value
(RFC 4515 section 3)."""
CODE_LENGTHS: Final = (6, 8)
"""The allowed lengths of a code that users append to the password, in digits."""


@dataclass(frozen=True, slots=True)
class Host:
    """The services that a first factor may use.

    domain: the name of the domain. hidden: maps the (vendor, type) of each encrypted answer attribute to the kind of
    encryption; see `radius.salted`. ntlm_auth: the pool of processes that ask winbind, or None if the domain's
    organization may not use it. monotonic: the monotonic clock, in seconds.
    """

    domain_id: int
    domain: str
    egress: Egress
    clock: Clock
    upstream: UpstreamMetrics
    hidden: Mapping[tuple[int, int], int]
    ntlm_auth: Helpers | None
    monotonic: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class DirectoryAccount:
    """An account of a directory that a client certificate names.

    name: its canonical name. sid: its security identifier; empty if the directory has none. upn: its user principal
    name; empty if the directory has none. is_machine: whether it is the account of a computer.
    """

    name: str
    sid: str = ""
    upn: str = ""
    is_machine: bool = False


class Checker(Protocol):
    """The first factor of one domain. It asks another server."""

    name: ClassVar[str]

    async def check(self, login: Login, takes_code: Callable[[], bool], tell: Tell) -> FirstFactorResult:
        """Check the credentials of a login.

        If the other server fails, the failure is returned as a reason. The call may be cancelled. Raises PacketError if
        the password field is malformed.

        takes_code: a function that returns whether a code may follow a PAP password. tell: a function that is called
        with a text about each step. An admin who tests the first factor sees these texts, so they contain no secrets.
        """

    async def run(self) -> None:
        """Run background tasks, such as probes and connection pools, until cancelled. `check` may be called before
        `run`."""


@runtime_checkable
class AtOnce(Checker, Protocol):
    """A checker that can also report its result to a callback, so that the login needs no task."""

    def begin(self, login: Login, takes_code: Callable[[], bool], done: Callable[[FirstFactorResult], None]) -> bool:
        """Start a check, and return True; `done` is called later with the result.

        Return False if the check cannot be started. Then `done` is never called, and the caller must await `check`.
        Raises PacketError if the password field is malformed.
        """


def silent(_step: str) -> None:
    """Ignore a step. Pass this function as `tell` if no admin follows the check."""
