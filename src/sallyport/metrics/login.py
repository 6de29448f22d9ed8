"""What was decided about logins, and who is locked out."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter

from sallyport.metrics.instruments import Read, Tally, Values

FROM_THE_START = {"monitor": ("allow", "deny", "would_deny"), "enforce": ("allow", "deny", "bypass", "error")}
"""The decisions of a mode."""


class LoginMetrics:
    """What was decided."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decisions = Tally(
            registry, "sallyport_mfa_decisions", "Decisions on logins.", ("domain", "mode", "decision")
        )
        self.purged = Tally(
            registry,
            "sallyport_events_purged",
            "Events deleted: their time or their room was over.",
            ("table", "reason"),
        )

    def watch_domains(self, shown: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Count from 0 on for these domains, given with their modes."""
        self.decisions.expect(
            lambda: ((domain, mode, each) for domain, mode in shown() for each in FROM_THE_START.get(mode, ()))
        )


class LockoutMetrics:
    """Users and stations that are locked out. kind: user or station."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lockouts = Counter("sallyport_lockouts", "Lock-outs after failures.", ["kind"], registry=registry)

    def locked(self, kind: str) -> None:
        """One was locked out."""
        self._lockouts.labels(kind).inc()

    def watch(self, read: Values) -> None:
        """Read how many are locked out when somebody scrapes."""
        Read(
            self._registry,
            "sallyport_locked_out",
            "Locked out now.",
            ("kind",),
            read,
        )
