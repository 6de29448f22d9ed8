"""Tests of the metrics of revocation lists."""

from prometheus_client import CollectorRegistry

from sallyport.metrics import ListFacts, RevocationMetrics

LATE = ListFacts(1, 1_000.0, 9_000.0, 100, 0, "expired")
DELTA = ListFacts(1, 8_000.0, 8_500.0, 10, 0, "valid", is_delta=True)
MISSING = ListFacts(2, 0.0, 0.0, 0, 3, "missing")


def metrics_of(*lists: ListFacts) -> CollectorRegistry:
    """Return a registry with the metrics of lists."""
    registry = CollectorRegistry()
    RevocationMetrics(registry).lists = lambda: lists
    return registry


def test_a_list_that_was_never_fetched_is_missing() -> None:
    """It has no times, and is counted by its state."""
    registry = metrics_of(LATE, DELTA, MISSING)
    counts = {
        (authority, state): registry.get_sample_value(
            "sallyport_revocation_lists", {"authority": authority, "state": state}
        )
        for authority in ("1", "2")
        for state in ("valid", "due", "expired", "missing")
    }
    assert {place for place, count in counts.items() if count} == {("1", "expired"), ("1", "valid"), ("2", "missing")}
    assert None not in counts.values()


def test_a_delta_list_does_not_hide_a_complete_one() -> None:
    """The times are those of the complete list, although the delta list expires before."""
    registry = metrics_of(DELTA, LATE)
    for name, value in (("this", 1_000.0), ("next", 9_000.0)):
        metric = f"sallyport_revocation_list_{name}_update_timestamp_seconds"
        assert registry.get_sample_value(metric, {"authority": "1"}) == value
