"""Metrics of the revocation of client certificates: lists, OCSP responders, and the results of checks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import MAX_NAMES, Durations, ReadGauge, Tally

RESULTS_OF_FETCHES = ("new", "same", "older", "refused", "failed")
RESULTS_OF_REQUESTS = ("good", "revoked", "unknown", "invalid", "failed")
STATES_OF_LISTS = ("valid", "due", "expired", "missing")
STATES = ("good", "revoked", "unknown")


@dataclass(frozen=True, slots=True)
class ListFacts:
    """The facts of one revocation list for the metrics.

    authority: the id of its authority. this_update, next_update: seconds since 1970; 0 if it was never fetched. octets:
    its size. failures: the number of fetches that have failed since the last success. state: one of STATES_OF_LISTS.
    is_delta: whether it is a delta list.
    """

    authority: int
    this_update: float
    next_update: float
    octets: int
    failures: int
    state: str
    is_delta: bool = False


class RevocationMetrics:
    """Metrics of revocation. Label authority: the id of an authority. Label result: how a fetch or a request has ended.
    Label state: good, revoked or unknown."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._fetches = Tally(
            registry,
            "sallyport_revocation_list_fetches",
            "Fetches of revocation lists: new, same, older (not used), refused (cannot be used), failed (no answer).",
            ("result",),
        )
        self._fetches.expect(lambda: ((each,) for each in RESULTS_OF_FETCHES))
        self._requests = Tally(
            registry,
            "sallyport_ocsp_requests",
            "Requests to OCSP responders: good, revoked, unknown, invalid (cannot be used), failed (no answer).",
            ("result",),
        )
        self._requests.expect(lambda: ((each,) for each in RESULTS_OF_REQUESTS))
        self._seconds = Durations(
            registry, "sallyport_ocsp_request_duration_seconds", "Duration of requests to OCSP responders.", "result"
        )
        checks = Tally(
            registry,
            "sallyport_revocation_checks",
            "Look-ups of the state of client certificates, by state: good, revoked, unknown.",
            ("state",),
        )
        self._cells = {each: checks.cell(each) for each in STATES}
        self.lists: Callable[[], Iterable[ListFacts]] = tuple
        for name, help, value in (
            (
                "sallyport_revocation_list_this_update_timestamp_seconds",
                "Time when the complete revocation list that expires first was issued, by authority.",
                lambda each: each.this_update,
            ),
            (
                "sallyport_revocation_list_next_update_timestamp_seconds",
                "Time when the first complete revocation list of an authority expires.",
                lambda each: each.next_update,
            ),
        ):
            ReadGauge(registry, name, help, ("authority",), self._of_first(value))
        ReadGauge(
            registry,
            "sallyport_revocation_lists",
            "Revocation lists of an authority by state: valid, due (expires soon), expired, missing (never fetched).",
            ("authority", "state"),
            self._by_state,
        )
        ReadGauge(
            registry,
            "sallyport_revocation_list_octets",
            "Size of all revocation lists of an authority.",
            ("authority",),
            lambda: self._summed(lambda each: each.octets),
        )
        ReadGauge(
            registry,
            "sallyport_revocation_list_failures",
            "Failed fetches of an authority's revocation lists since the last success.",
            ("authority",),
            lambda: self._summed(lambda each: each.failures),
        )

    def fetched(self, result: str) -> None:
        """Count a fetch of a list. result: new, same, older, refused or failed."""
        self._fetches.cell(result).count += 1

    def asked(self, result: str, seconds: float) -> None:
        """Count a request to a responder. result: good, revoked, unknown, invalid or failed."""
        self._requests.cell(result).count += 1
        self._seconds.of(result).observe(seconds)

    def checked(self, state: str) -> None:
        """Count a check at a login. state: good, revoked or unknown."""
        self._cells[state].count += 1

    def _of_first(self, value: Callable[[ListFacts], float]) -> Callable[[], dict[tuple[str, ...], float]]:
        """Return a function that returns a value of the complete list that expires first, by authority. A delta list
        usually expires long before, and would hide a complete one that is late."""

        def read() -> dict[tuple[str, ...], float]:
            found: dict[tuple[str, ...], float] = {}
            for each in sorted(self.lists(), key=lambda each: each.next_update)[: 16 * MAX_NAMES]:
                if each.next_update and not each.is_delta:
                    found.setdefault((str(each.authority),), value(each))
            return dict(list(found.items())[:MAX_NAMES])

        return read

    def _by_state(self) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for each in self.lists():
            places = [(str(each.authority), state) for state in STATES_OF_LISTS]
            if places[0] in found or len(found) < MAX_NAMES:
                for place in places:
                    found[place] = found.get(place, 0.0) + (place[1] == each.state)
        return found

    def _summed(self, value: Callable[[ListFacts], int]) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for each in self.lists():
            labels = (str(each.authority),)
            if labels in found or len(found) < MAX_NAMES:
                found[labels] = found.get(labels, 0.0) + value(each)
        return found
