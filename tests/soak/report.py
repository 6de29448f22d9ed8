"""The table of a campaign, for the terminal and for docs/architecture/campaign.md."""

from datetime import UTC, datetime
from statistics import quantiles

from tabulate import tabulate

from tests.soak.runner import Figures


def table(figures: Figures, seconds: float, seed: int, engine: str) -> str:
    """Return the figures as a table in Markdown."""
    delays = sorted(figures.delays)
    p99 = f"{quantiles(delays, n=100)[98] * 1000:.0f} ms" if len(delays) > 100 else "-"
    faults = ", ".join(f"{number:,} {name}" for name, number in sorted(figures.faults.items()))
    rows = [
        ("date", f"{datetime.now(UTC):%Y-%m-%d}"),
        ("engine, seed", f"{engine}, {seed}"),
        (
            "duration",
            f"{seconds / 60:.0f} min, {figures.rounds} rounds, of which {figures.starved} without checks of times",
        ),
        ("kills", f"{figures.kills:,}"),
        ("datagrams", f"{figures.datagrams:,}, of which {figures.disturbed_datagrams:,} lost, repeated or delayed"),
        ("logins answered", f"{figures.logins:,}"),
        ("accounting records", f"{figures.records:,}"),
        ("requests of API and console", f"{figures.requests:,}"),
        ("untouched tenant", f"{len(delays):,} answers, p99 {p99}, {figures.late:,} over the limit"),
        ("findings", f"{len(figures.findings):,}"),
    ]
    return f"{tabulate(rows, ['', ''], tablefmt='github', disable_numparse=True)}\n\nFaults: {faults}."
