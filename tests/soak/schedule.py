"""The schedule of a campaign: a function of the seed. No clock and no process is read here, so that a seed repeats
it."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

ROUND_S: Final = 15.0
ROUNDS: Final = 20
"""Number of rounds of an installation: each fourth one is calm, and the last four are."""
PAUSE_S: Final = 2.0
"""The longest pause between two faults at one place, if the place has no other."""


class Kind(Protocol):
    """A kind of fault.

    place: what it breaks; a place has one fault at a time. longest_s: the longest time that it lasts. pause_s: the
    longest pause before and after it. disturbs_all: whether all tenants of the node notice it.
    """

    name: str
    place: str
    longest_s: float
    pause_s: float
    disturbs_all: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A fault. at_s: its begin in the round. seed: of its own choices."""

    at_s: float
    lasts_s: float
    fault: str
    seed: int


@dataclass(frozen=True, slots=True)
class Round:
    """The faults of a round, by their begin."""

    installation: int
    number: int
    is_calm: bool
    seed: int
    steps: tuple[Step, ...]


def rounds(
    seed: int, installation: int, kinds: Sequence[Kind], *, count: int = ROUNDS, seconds: float = ROUND_S
) -> list[Round]:
    """Return the rounds of an installation. kinds: the kinds of faults of the engine, in a fixed order."""
    random = Random(f"{seed}/{installation}")
    found = []
    for number in range(count):
        is_calm = number % 4 == 3 or number >= count * 0.8
        usable = [kind for kind in kinds if not (is_calm and kind.disturbs_all)]
        steps: list[Step] = []
        for place in dict.fromkeys(kind.place for kind in usable):
            steps += _steps(random, [kind for kind in usable if kind.place == place], seconds)
        found.append(
            Round(
                installation,
                number,
                is_calm,
                random.getrandbits(32),
                tuple(sorted(steps, key=lambda step: (step.at_s, step.fault))),
            )
        )
    return found


def _steps(random: Random, kinds: Sequence[Kind], seconds: float) -> list[Step]:
    """Return the faults at one place, one after the other."""
    steps, at = list[Step](), random.uniform(0.2, kinds[0].pause_s)
    while at < seconds - 1:
        kind = random.choice(kinds)
        lasts = min(random.uniform(0.05, 1.0) * kind.longest_s, seconds - at)
        steps.append(Step(round(at, 3), round(lasts, 3), kind.name, random.getrandbits(32)))
        at += lasts + random.uniform(0.2, kind.pause_s)
    return steps
