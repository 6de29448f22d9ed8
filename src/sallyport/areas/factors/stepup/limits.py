"""The limits of wrong codes at the page: by address and network, in total, and those that prove a login by person."""

from collections.abc import Iterator
from ipaddress import IPv6Network
from typing import Final, Protocol

import structlog

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.tenancy.guesses import Guesses, guesses_of_all_nodes, network_of
from sallyport.base.clock import SECOND, Clock
from sallyport.metrics import StepUpMetrics
from sallyport.nodes.notices import Notices

WRONG_CODES: Final = 20
"""Number of wrong codes that an address, or a /64 network, may send without a pause."""
WRONG_CODES_OF_56: Final = 60
WRONG_CODES_OF_48: Final = 240
"""The same number for larger networks of IPv6. Otherwise one subscriber with many /64 networks has many limits."""
WRONG_CODES_OF_ALL: Final = 30_000
"""Number of wrong codes that all addresses together may send to a node within a minute. With a thousand open step-ups,
the chance to hit a code within a day is then about 1 in 19,000."""
NEW_ADDRESSES: Final = 600
"""Number of addresses without a wrong code that a node admits within a minute after WRONG_CODES_OF_ALL. So an attacker
with many addresses cannot keep everybody out."""
_EVERYBODY: Final = "all addresses"
_ALL_REFILL_US: Final = 2_000
_NEW_REFILL_US: Final = 100_000
_WARN_US: Final = 60 * SECOND

log = structlog.get_logger()


class LockOuts(Protocol):
    """The lock-outs of people, with those of their logins."""

    def is_locked(self, person: Person) -> bool:
        """Return whether a person is locked out."""

    async def count_wrong_code(self, person: Person) -> None:
        """Count a wrong code of a person. Raises StoreError."""


class CodeGuesses:
    """The wrong codes of each address and network, over all nodes, and those of all addresses at this node.

    An address that has reached the limit is refused before its code is looked up. So a limit that an attacker has
    reached does not tell whether a code exists.
    """

    def __init__(self, notices: Notices, metrics: StepUpMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._of_address = guesses_of_all_nodes(notices, "stepup_code", clock, burst=WRONG_CODES)
        self._of_networks = {
            56: guesses_of_all_nodes(notices, "stepup_code_56", clock, burst=WRONG_CODES_OF_56),
            48: guesses_of_all_nodes(notices, "stepup_code_48", clock, burst=WRONG_CODES_OF_48),
        }
        self._of_all = Guesses(burst=WRONG_CODES_OF_ALL, refill_us=_ALL_REFILL_US)
        self._new = Guesses(burst=NEW_ADDRESSES, refill_us=_NEW_REFILL_US)
        self._warn_at = 0

    def refuses(self, source: str) -> bool:
        """Return whether the code of an address is not looked up, because there were too many wrong codes. If all
        addresses together have sent too many, this counts an address that is admitted nevertheless."""
        now = self._clock()
        if any(guesses.too_many(counted, now) for guesses, counted in self._counted(source)):
            self._metrics.failed("address_limit")
            return True
        if not self._of_all.too_many(_EVERYBODY, now):
            return False
        self._metrics.failed("total_limit")
        self._warn(now)
        if not self._of_address.is_unknown(source, now) or self._new.too_many(_EVERYBODY, now):
            return True
        self._new.count(_EVERYBODY, now)
        return False

    def fail(self, source: str) -> None:
        """Count a wrong code of an address."""
        now = self._clock()
        self._metrics.failed("wrong")
        for guesses, counted in self._counted(source):
            guesses.fail(counted, now)
        self._of_all.count(_EVERYBODY, now)

    def _counted(self, source: str) -> Iterator[tuple[Guesses, str]]:
        """Yield the limits of an address, each with what it counts: the address, or its networks."""
        yield self._of_address, source
        network = network_of(source)
        if network.endswith("/64"):
            address = int(IPv6Network(network).network_address)
            for length, guesses in self._of_networks.items():
                left = 128 - length
                yield guesses, str(IPv6Network((address >> left << left, length)))

    def _warn(self, now: int) -> None:
        if now >= self._warn_at:
            self._warn_at = now + _WARN_US
            log.warning("stepup_codes_guessed")
