"""The fuzzing tool: each target accepts its seeds and small changes of them, and a broken promise is an error."""

from random import Random

import pytest

from tests.fuzz.__main__ import figures
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, Target, check, joined, pieces

CHANGES = 10


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_of_a_target(name: str) -> None:
    """Each seed, and copies with a changed octet or a missing end, keep the promises."""
    target, chance = TARGETS[name], Random(1)
    for seed in seeds(name):
        check(target, seed)
        for _ in range(CHANGES if len(seed) < 1000 else 1):
            changed = bytearray(seed)
            changed[chance.randrange(len(changed))] = chance.randrange(256)
            check(target, bytes(changed))
            check(target, seed[: chance.randrange(len(seed))])


def test_pieces_go_round() -> None:
    """The parts of an input are those that were joined."""
    parts = [b"", b"a", bytes(255)]
    assert pieces(joined(parts)) == parts


def test_a_slow_input_is_an_error() -> None:
    """An input that takes more CPU time than the limit breaks a promise."""
    with pytest.raises(AssertionError, match="octets"):
        check(Target(lambda _: None, 1), b"x", cpu_s=0)


def test_the_figures_of_a_run() -> None:
    """Executions and coverage are read from the last lines of libFuzzer."""
    lines = "#2\tINITED cov: 10 ft: 10\n#88\tpulse  cov: 31 ft: 40 corp: 3/9b\nDone 99 runs in 5 second(s)\n"
    assert figures(lines) == (99, 31)
