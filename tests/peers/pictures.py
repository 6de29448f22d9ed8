"""A program that draws each dashboard with the data of a real Prometheus, as an SVG page and Chromium's picture of it.

    python -m tests.peers.pictures DIRECTORY

Grafana cannot be installed everywhere. This program sends the same expressions as Grafana, and places the panels as
Grafana's JSON says. The pictures show what users would see: empty panels, unsuitable units, legends that look alike.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from grafana.board import build
from grafana.boards import ALL

from tests.grafana.expressions import filled
from tests.peers.prometheus import Prometheus
from tests.peers.watched import watched_service

SECONDS = 90
"""The shown time, which begins with the demo's traffic."""
CELL, LINE = 66, 36
"""The width of a column and the height of a row of Grafana's grid, in pixels."""
COLOURS = ("#3b82c4", "#d9822b", "#4f9d5d", "#b8475a", "#7d62b5", "#8a6d4f", "#c26fa8", "#6f7780", "#a8a13a", "#3aa6a8")


@dataclass(frozen=True)
class Series:
    """One line of a graph, with its name and its (time, value) pairs."""

    name: str
    points: list[tuple[float, float]]


def shown(value: float, unit: str) -> str:
    """Return a number as Grafana shows it in a unit."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s" and value < 1:
        return f"{value * 1000:.3g} ms"
    if unit == "s":
        return f"{value:.3g} s" if value < 120 else f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")) if unit == "bytes" else ():
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.4g}" + {"reqps": " req/s", "bytes": " B"}.get(unit, "")


def asked(prometheus: Prometheus, panel: dict[str, Any], end: float) -> list[Series]:
    """Return the results of the expressions of a panel."""
    found = []
    for target in panel["targets"]:
        query = filled(target["expr"], rate="15s", span="5m")
        if target.get("instant"):
            data = prometheus.query(query)
            results = [{**each, "values": [each["value"]]} for each in data]
        else:
            times = {"start": str(end - SECONDS), "end": str(end), "step": "1"}
            results = prometheus.get("query_range", query=query, **times)["result"]
        for each in results:
            name = re.sub(
                r"{{(\w+)}}", lambda label, each=each: each["metric"].get(label[1], ""), target["legendFormat"]
            )
            points = [(float(at), float(value)) for at, value in each["values"] if value not in ("NaN", "+Inf")]
            found.append(Series(name, points))
    return found


def drawn(panel: dict[str, Any], series: list[Series], end: float) -> str:
    """Return a panel as SVG, at its position."""
    place, unit = panel["gridPos"], (panel.get("fieldConfig") or {}).get("defaults", {}).get("unit", "short")
    x, y, width, height = place["x"] * CELL, place["y"] * LINE, place["w"] * CELL - 8, place["h"] * LINE - 8
    if panel["type"] == "row":
        return f'<text x="{x + 6}" y="{y + 22}" class="row">{escape(panel["title"])}</text>'
    parts = [
        f'<g transform="translate({x},{y})"><rect width="{width}" height="{height}" class="panel"/>',
        f'<text x="10" y="20" class="title">{escape(panel["title"])}</text>',
    ]
    series = [each for each in series if each.points]
    if not series:
        parts.append(f'<text x="{width / 2 - 30}" y="{height / 2}" class="none">No data</text>')
    elif panel["type"] == "stat":
        is_text = panel["options"]["textMode"] == "name"
        numbers = (
            f"{each.points[-1][1]:.0f}" if unit == "short" else shown(each.points[-1][1], unit) for each in series
        )
        text = "  ".join((each.name for each in series) if is_text else numbers)
        parts.append(f'<text x="10" y="{height - 22}" class="stat">{escape(text)}</text>')
    else:
        parts += curves(series, unit, end, width, height)
    return "".join([*parts, "</g>"])


def curves(series: list[Series], unit: str, end: float, width: int, height: int) -> list[str]:
    """Return the SVG of the lines, with their scale and their legend."""
    left, top, right, bottom = 74, 32, width - 12, height - 44
    most = max(value for each in series for _, value in each.points) or 1.0
    parts = []
    for share in (0, 0.5, 1):
        at = bottom - share * (bottom - top)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{at}" y2="{at}" class="grid"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4}" class="scale">{escape(shown(most * share, unit))}</text>')
    for number, each in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(
            f"{left + (1 - (end - at) / SECONDS) * (right - left):.1f},"
            f"{bottom - max(0.0, value) / most * (bottom - top):.1f}"
            for at, value in each.points
        )
        parts.append(f'<polyline points="{path}" stroke="{colour}"/>')
    columns = max(1, min(6, (width - 20) // 180))
    for number, each in enumerate(series[: 2 * columns]):
        across, down = number % columns, number // columns
        parts.append(
            f'<text x="{14 + across * (width - 20) / columns:.0f}" y="{height - 22 + down * 15}" class="legend" '
            f'fill="{COLOURS[number % len(COLOURS)]}">{escape(each.name[:40] or "(no name)")}</text>'
        )
    if len(series) > 2 * columns:
        parts.append(f'<text x="{width - 60}" y="20" class="legend">+{len(series) - 2 * columns}</text>')
    return parts


def page(board: dict[str, Any], prometheus: Prometheus, end: float) -> tuple[str, int]:
    """Return a dashboard as HTML, and its height in pixels."""
    panels = board["panels"]
    height = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in panels) * LINE + 60
    inside = "".join(drawn(each, asked(prometheus, each, end) if "targets" in each else [], end) for each in panels)
    style = (
        "body{margin:12px;font:13px sans-serif;background:#f4f5f7}h1{font-size:18px;margin:0 0 8px}"
        ".panel{fill:#fff;stroke:#d5dae0}.row{font-size:15px;font-weight:bold}.title{font-weight:bold}"
        ".none{fill:#b8475a}.stat{font-size:26px;fill:#1f6f43}.grid{stroke:#e4e7eb}.scale{text-anchor:end;fill:#6f7780;"
        "font-size:11px}.legend{font-size:11px}polyline{fill:none;stroke-width:1.5}"
    )
    return (
        f"<!doctype html><meta charset=utf-8><style>{style}</style><h1>{escape(board['title'])}</h1>"
        f'<svg width="{24 * CELL}" height="{height}">{inside}</svg>'
    ), height + 60


def main(directory: Path) -> None:
    """Write NAME.html and NAME.png of each dashboard."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, watched_service(Path(scratch)) as watched:
        time.sleep(15)  # the last counts must be scraped twice to make a rate
        end = time.time()
        for board in ALL:
            html, height = page(json.loads(build(board)), watched.prometheus, end)
            file = directory / f"{board.name}.html"
            file.write_text(html, encoding="utf-8")
            photograph(file, height)
            print(file.with_suffix(".png"))


def photograph(file: Path, height: int) -> None:
    """Save Chromium's picture of a page beside the page. Do nothing if Chromium is not installed."""
    program = shutil.which("chromium")
    if program is None:
        return
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                program,
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
                f"--user-data-dir={profile}",
                f"--screenshot={file.with_suffix('.png')}",
                f"--window-size={24 * CELL + 30},{height}",
                file.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
