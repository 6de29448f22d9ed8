"""The figures of a campaign, and their table for the terminal and for docs/architecture/soak.md."""

from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from statistics import quantiles

from tabulate import tabulate


@dataclass
class Figures:
    """What a campaign has done and found. faults: the number of each kind. effects: the sum of their effects. outcomes:
    how often each kind of client got each decision. delays: of the untouched tenant, in seconds. starved: the number of
    rounds whose times were not judged, because the machine was busy otherwise. judged: the number of calm rounds that
    were compared with an earlier one of the same process. restored: the number of logins that were found in restored
    backups. states: the number of states that agents have received."""

    faults: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    datagrams: int = 0
    disturbed_datagrams: int = 0
    requests: int = 0
    states: int = 0
    rounds: int = 0
    delays: list[float] = field(default_factory=list)
    late: int = 0
    starved: int = 0
    judged: int = 0
    restored: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """The number of times that running nodes and databases were killed."""
        return sum(self.effects[name] for name in ("kill", "storm", "loss", "database-kill", "promotion"))

    @property
    def records(self) -> int:
        """The number of accounting records that were answered."""
        return sum(number for (_, decision), number in self.outcomes.items() if decision == "stored")

    @property
    def logins(self) -> int:
        """The number of logins that were answered."""
        return self.outcomes.total() - self.records

    def add(self, other: "Figures") -> None:
        """Add the figures of an installation."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def table(figures: Figures, seconds: float, seed: int, engine: str) -> str:
    """Return the figures in Markdown: a table, the faults with their effects, and the answers of the clients."""
    delays = sorted(figures.delays)
    p99 = f"{quantiles(delays, n=100)[98] * 1000:.0f} ms" if len(delays) > 100 else "-"
    kinds = sorted({kind for kind, _ in figures.outcomes})
    rows = [
        ("date", f"{datetime.now(UTC):%Y-%m-%d}"),
        ("engine, seed", f"{engine}, {seed}"),
        ("duration", f"{seconds / 60:.0f} min, {figures.rounds} rounds, {figures.starved} without checks of times"),
        ("kills", f"{figures.kills:,}"),
        ("datagrams", f"{figures.datagrams:,}, of which {figures.disturbed_datagrams:,} lost, repeated or delayed"),
        ("logins answered", f"{figures.logins:,}"),
        ("accounting records", f"{figures.records:,}"),
        ("requests of API and console", f"{figures.requests:,}"),
        ("states that agents received", f"{figures.states:,}"),
        ("logins found in restored backups", f"{figures.restored:,}"),
        ("calm rounds compared with an earlier one of their process", f"{figures.judged:,}"),
        ("untouched tenant", f"{len(delays):,} answers, p99 {p99}, {figures.late:,} over the limit"),
        ("findings", f"{len(figures.findings):,}"),
    ]
    lines = [
        tabulate(rows, ["", ""], tablefmt="github", disable_numparse=True),
        "Faults, with the sum of their effects: "
        + ", ".join(f"{number} {name} ({figures.effects[name]:,})" for name, number in sorted(figures.faults.items())),
        "Clients: " + "; ".join(f"{kind} {_decisions(figures, kind)}" for kind in kinds),
    ]
    return "\n\n".join(lines)


def _decisions(figures: Figures, kind: str) -> str:
    return ", ".join(f"{n:,} {decision}" for (each, decision), n in sorted(figures.outcomes.items()) if each == kind)
