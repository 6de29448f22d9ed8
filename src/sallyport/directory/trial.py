"""Tries a directory for an admin, before or after its settings are saved: connects, logs in, and reads the first
accounts. Nothing is stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import trio

from sallyport.base.bounded import ExpiringMap
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import Invalid, Refused, SallyportError, SecretError, StoreError, TooMany
from sallyport.directory.directory import Configuration
from sallyport.directory.imports.job import Check
from sallyport.directory.service import Directories

TRIAL_S: Final = 30.0
PER_MINUTE: Final = 5
_DOMAINS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a trial. message: for an admin; if the directory is not usable, the reason."""

    usable: bool
    message: str


class Trials:
    """Tries directories. checks: by the kind of directory. advice: how to allow the hosts that a domain's tenant was
    denied lately; for the installation only."""

    def __init__(
        self, directories: Directories, checks: Mapping[str, Check], advice: Callable[[int], list[str]], clock: Clock
    ) -> None:
        self.advice = advice
        self._directories = directories
        self._checks = checks
        self._clock = clock
        self._lately = ExpiringMap[int, int](_DOMAINS, 60 * SECOND)

    def admit(self, domain_id: int) -> None:
        """Count a trial, which connects to another server. TooMany."""
        now = self._clock()
        count = self._lately.get(domain_id, now=now) or 0
        if count >= PER_MINUTE:
            raise TooMany(f"more than {PER_MINUTE} trials a minute")
        self._lately.put(domain_id, count + 1, now=now)

    async def run(self, domain_id: int, configuration: Configuration) -> TrialResult:
        """Try a directory with its stored settings and the given ones. Invalid: the service does not read the
        directory, or the settings cannot be saved. Conflict, StoreError, SecretError."""
        source = await self._directories.source(domain_id, configuration)
        check = self._checks.get(source.kind)
        if check is None:
            raise Invalid.about("the service does not read a directory of this kind", "kind")
        try:
            with trio.fail_after(TRIAL_S):
                found = await check(source)
        except trio.TooSlowError:
            return TrialResult(usable=False, message=f"the directory has not answered within {TRIAL_S:.0f} s")
        except (Refused, StoreError, SecretError):
            raise
        except (SallyportError, OSError) as error:
            return TrialResult(usable=False, message=str(error))
        return TrialResult(usable=True, message=f"the directory answers, and shows {found} or more accounts")
