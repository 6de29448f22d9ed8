"""The tables of docs/operate/capacity.md that are computed from the figures of `sallyport bench`.

`python -m tests.docs.capacity` writes them into the page.
"""

from pathlib import Path

from sallyport.cli.bench import TITLES
from sallyport.cli.benchmark.capacity import HERD, HOUR_S, Supply, disk_gb, figures

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
            f"{TITLES[name]}{engine}",
            "" if each.rate is None else f"{each.rate:,.0f}",
            "" if each.p99_ms is None else f"{each.p99_ms:.1f}",
            f"{each.cpu_ms:.4g}",
            f"{each.database_ms:.4g}" if each.database_ms else "",
            each.source,
        )
        for engine, phases in (("", figures().phases), ("; PostgreSQL", figures().postgres))
        for name, each in phases.items()
    ]
    return _table(("load", "a second", "p99 ms", "CPU ms each", "PostgreSQL: CPU ms each", "measured in"), *rows)


def _examples() -> str:
    """Return what some numbers of stations need."""
    sqlite, postgres = Supply.of(figures().phases), Supply.of(figures().postgres)
    rows = []
    for stations in (10_000, HERD, 2 * HERD, 10 * HERD):
        cores = [f"{each.cores_for(stations):.2f}" for each in (sqlite, postgres)]
        disk = f"{disk_gb(stations, DAYS):,.0f} GB"
        herds = [f"{each.herd_s(stations):,.0f} s" for each in (sqlite, postgres)]
        rows.append((f"{stations:,}", f"{stations / HOUR_S:,.1f}", *cores, disk, *herds))
    titles = ("stations", "logins a second", "cores", "with PostgreSQL", f"disk for {DAYS} days")
    herds = ["herd with one core", "with PostgreSQL"]
    limits = " or, with PostgreSQL, ".join(f"{float(f'{each.stations:.1e}'):,.0f}" for each in (sqlite, postgres))
    return f"{_table((*titles, *herds), *rows)}\n\nOne core is enough for {limits} stations."


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
