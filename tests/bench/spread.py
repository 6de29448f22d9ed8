"""The median of several turns with their spread, and the table of the aims of a benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tabulate import tabulate


def spread(values: Sequence[float], form: str) -> str:
    """Return the median, and the lowest and the highest value if there are several: `9.1 (8.7 to 9.4)`.

    form: the format of a number, such as `.1f`.
    """
    middle, lowest, highest = (format(value, form) for value in (median(values), min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({lowest} to {highest})"


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure that a benchmark compares with an aim.

    values: the figure in each round. most: whether the figure should be at most `aim`, not at least.
    """

    figure: str
    aim: float
    values: Sequence[float]
    form: str = ".2f"
    most: bool = False

    @property
    def is_reached(self) -> bool:
        """Whether the median reaches the aim."""
        middle = median(self.values)
        return middle <= self.aim if self.most else middle >= self.aim


def compared(aims: Sequence[Aim]) -> list[str]:
    """Return the table of the aims as Markdown, or an empty list if there are none. A missed aim is marked."""
    if not aims:
        return []
    rows = [
        [
            each.figure,
            f"{'at most' if each.most else 'at least'} {each.aim:,g}",
            spread(each.values, each.form),
            "reached" if each.is_reached else "**missed**",
        ]
        for each in aims
    ]
    headers = ["figure", "aim", "median of the rounds", ""]
    return [tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 3])]
