"""The tables of docs/operate/capacity.md that are computed from the figures of `sallyport bench`.

`python -m tests.docs.capacity` writes them into the page.
"""

from pathlib import Path

from sallyport.cli.bench import TITLES
from sallyport.cli.benchmark.capacity import HERD, HOUR_S, cores, disk_gb, figures, herd_s, people

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "capacity.md"
DAYS = 90


def tables() -> dict[str, str]:
    """Return the Markdown of each table by its name in the page."""
    return {"figures": _figures(), "examples": _examples()}


def _table(*rows: tuple[str, ...]) -> str:
    head, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *others])


def _figures() -> str:
    rows = [
        (
            TITLES[name],
            f"{each.rate:,.0f}",
            "" if each.p99_ms is None else f"{each.p99_ms:.1f}",
            f"{each.cpu_ms:.4g}",
            each.source,
        )
        for name, each in figures().phases.items()
    ]
    return _table(("load", "a second", "p99 ms", "CPU ms each", "measured in"), *rows)


def _examples() -> str:
    """Return what some numbers of stations need."""
    cpu_ms = figures().cpu_ms
    rows = []
    for stations, interval_s in ((10_000, HOUR_S), (HERD, HOUR_S), (2 * HERD, HOUR_S), (10 * HERD, HOUR_S)):
        needed = cores(cpu_ms, stations, interval_s)
        herd = " and ".join(f"{herd_s(cpu_ms, stations, workers):,.0f}" for workers in (1, 4))
        disk = f"{disk_gb(stations, DAYS, interval_s):,.0f} GB"
        rows.append((f"{stations:,}", f"{stations / interval_s:,.1f}", f"{needed:.2f}", disk, f"{herd} s"))
    titles = ("stations", "logins a second", "cores", f"disk for {DAYS} days", "herd with 1 and 4 workers")
    limit = f"One core is enough for {float(f'{people(cpu_ms):.1e}'):,.0f} stations."
    return f"{_table(titles, *rows)}\n\n{limit}"


def written(text: str) -> str:
    """Return the text of the page with the present tables."""
    for name, table in tables().items():
        begin, end = f"<!-- {name}: python -m tests.docs.capacity -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table}\n\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
