"""The fuzzing tool: each target accepts its seeds and small changes of them, and a broken promise is an error."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.__main__ import figures
from tests.fuzz.folders import OutsideError, only_file
from tests.fuzz.inputs import joined, pieces
from tests.fuzz.properties import PROPERTIES
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, Target, check

CHANGES = 10


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in PROPERTIES])
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


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_is_a_target(name: str) -> None:
    """A property of the tests takes its arguments from the input."""
    TARGETS[name].run(b"")  # it imports
    check(TARGETS[name], bytes(64))


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../canary", "link", "."], ids=["absolute", "parent", "symbolic-link", "parent-folder"]
)
def test_an_access_outside_of_the_folder_is_an_error(target: str) -> None:
    """A reader that opens a path outside of its folder breaks a promise, even if it suppresses the error."""

    def read(octets: bytes) -> None:
        with only_file(octets, "file") as path, suppress(Exception):
            if target == ".":
                list(path.parent.parent.iterdir())
            else:
                (path.parent / target).read_bytes()

    with pytest.raises(OutsideError):
        check(Target(read, 1), b"x")
    with only_file(b"inside", "file") as path:
        assert path.read_bytes() == b"inside"


def test_a_broken_promise_is_an_error() -> None:
    """An error that a target raises is a finding."""

    def broken(_octets: bytes) -> None:
        raise KeyError("not documented")

    with pytest.raises(KeyError):
        check(Target(broken, 1), b"x")


def test_pieces_go_round() -> None:
    """The parts of an input are those that were joined."""
    parts = [b"", b"a", bytes(255)]
    assert pieces(joined(parts)) == parts


def test_the_page_names_each_target() -> None:
    """The documentation lists the targets."""
    text = Path("docs/architecture/campaigns.md").read_text()
    assert [name for name in TARGETS if f"`{name}`" not in text] == []


def test_a_slow_input_is_an_error() -> None:
    """An input that takes more CPU time than the limit breaks a promise."""
    with pytest.raises(AssertionError, match="octets"):
        check(Target(lambda _: None, 1), b"x", cpu_s=0)


def test_the_figures_of_a_run() -> None:
    """Executions and coverage are read from the last lines of libFuzzer."""
    lines = "#2\tINITED cov: 10 ft: 10\n#88\tpulse  cov: 31 ft: 40 corp: 3/9b\nDone 99 runs in 5 second(s)\n"
    assert figures(lines) == (99, 31)
