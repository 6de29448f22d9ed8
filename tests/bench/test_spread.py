"""The median of turns with its spread, and the aims of a benchmark."""

import pytest

from .__main__ import Benchmark, page
from .spread import Aim, compared, spread

pytestmark = pytest.mark.bench


def test_a_figure_has_its_spread() -> None:
    """Several turns give the median with the lowest and the highest; a single turn has no spread."""
    assert spread([1200.0, 900.0, 1000.0], ",.0f") == "1,000 (900 to 1,200)"
    assert spread([0.125], ".2f") == "0.12"


@pytest.mark.parametrize(
    ("aim", "result"),
    [
        (Aim("rate", 10, [9.0, 10.5, 11.0], ".1f"), "at least 10 | 10.5 (9.0 to 11.0) | reached"),
        (Aim("rate", 10, [9.0, 9.5, 11.0], ".1f"), "at least 10 | 9.5 (9.0 to 11.0) | **missed**"),
        (Aim("cost", 1.1, [1.0, 1.05, 1.2], most=True), "at most 1.1 | 1.05 (1.00 to 1.20) | reached"),
        (Aim("cost", 1.1, [1.2], most=True), "at most 1.1 | 1.20 | **missed**"),
    ],
    ids=["enough", "too little", "cheap", "too expensive"],
)
def test_a_missed_aim_is_marked(aim: Aim, result: str) -> None:
    """The median of the rounds counts."""
    (table,) = compared([aim])
    row = " | ".join(cell.strip() for cell in table.splitlines()[-1].strip("|").split("|"))
    assert row == f"{aim.figure} | {result}"


def test_without_aims_there_is_no_table() -> None:
    """If a server of the comparison was left out, nothing is compared."""
    assert compared([]) == []


def test_a_page_tells_the_machine_and_the_day() -> None:
    """The page of a result has a title, the command that wrote it, the day, the machine and the result."""
    text = page(Benchmark("radius", "logins over RADIUS", lambda _: ""), "- processor: one", "| table |")
    assert text.startswith("# Logins over RADIUS\n\n`make bench ARGS=radius` wrote this page.\n\n- date: 20")
    assert text.endswith("\n- processor: one\n\n| table |\n")
