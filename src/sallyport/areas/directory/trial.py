"""Test a directory for an admin: connect, log in, and read the first accounts. Nothing is stored. The settings need not
be saved yet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import trio

from sallyport.areas.directory.directory import Configuration
from sallyport.areas.directory.imports.job import Check
from sallyport.areas.directory.service import Directories
from sallyport.base.clock import Clock
from sallyport.base.errors import Invalid, Refused, SallyportError, SecretError, StoreError
from sallyport.base.fair import PerMinute

TRIAL_S: Final = 30.0
PER_MINUTE: Final = 5


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a test. message: a text for an admin. If the directory is not usable, the text is the reason."""

    usable: bool
    message: str


class Trials:
    """Tests directories. checks: functions that test directories, by kind of directory.

    advice: a function that takes a domain's id and returns a text for admins of the installation. `egress` may have
    recently refused connections of the domain's tenant to some hosts. The text then says how to allow these hosts.
    """

    def __init__(
        self, directories: Directories, checks: Mapping[str, Check], advice: Callable[[int], list[str]], clock: Clock
    ) -> None:
        self.advice = advice
        self._directories = directories
        self._checks = checks
        self._admitted = PerMinute[int](PER_MINUTE, "trials", clock)

    def admit(self, domain_id: int) -> None:
        """Count a test of a directory in the domain. Raises TooMany if the domain has reached the limit of tests in
        a minute."""
        self._admitted.admit(domain_id)

    async def run(self, domain_id: int, configuration: Configuration) -> TrialResult:
        """Test a directory. The given settings replace the stored settings for the test. Raises Invalid if the service
        cannot read the directory, or if the settings could not be saved. Raises Conflict, StoreError, SecretError."""
        source = await self._directories.source(domain_id, configuration)
        check = self._checks.get(source.kind)
        if check is None:
            raise Invalid.about("the service reads only directories of the kinds ldap, graph and okta", "kind")
        try:
            with trio.fail_after(TRIAL_S):
                found = await check(source)
        except trio.TooSlowError:
            return TrialResult(usable=False, message=f"the directory has not answered within {TRIAL_S:.0f} s")
        except (Refused, StoreError, SecretError):
            raise
        except (SallyportError, OSError) as error:
            return TrialResult(usable=False, message=str(error))
        return TrialResult(usable=True, message=f"the directory answers, and has {found} or more accounts")
