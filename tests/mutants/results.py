"""The results of an area: a file with one line for each mutant, from which an interrupted run continues."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutants.areas import Area, digest
from tests.mutants.mutations import Mutant

EXPLAINED = Path(__file__).with_name("explained.txt")


class Outcome(StrEnum):
    """What the tests say about a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    NO_TEST = "no test"
    """No test of the area runs the statement."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a mutant. by: the test that noticed it. tests: the number of tests that ran."""

    mutant: Mutant
    outcome: Outcome
    by: str
    tests: int

    @property
    def is_noticed(self) -> bool:
        return self.outcome in (Outcome.KILLED, Outcome.TIMED_OUT)


class Results:
    """The results of an area in its file. A result is valid until its source changes, and that of a survivor until a
    source or a test of the area does."""

    def __init__(self, area: Area, root: Path, folder: Path) -> None:
        self._file = folder / "mutants.tsv"
        self._sources = {path: digest([file]) for path, file in area.files(root).items()}
        self._all = digest([*sorted(area.files(root).values()), *area.test_files(root)])

    def add(self, result: Result) -> None:
        """Append a result."""
        mutant = result.mutant
        stamp = self._stamp(mutant, result.outcome)
        words = (
            result.outcome,
            mutant.path,
            mutant.line,
            mutant.function,
            mutant.change,
            result.by,
            result.tests,
            stamp,
        )
        with self._file.open("a") as file:
            file.write("\t".join(map(str, words)) + "\n")

    def of(self, mutants: Iterable[Mutant]) -> dict[Mutant, Result]:
        """Return the valid results of these mutants."""
        by_place = {mutant.place: mutant for mutant in mutants}
        found = {}
        for line in self._file.read_text().splitlines() if self._file.exists() else ():
            outcome, path, _, function, change, by, tests, stamp = line.split("\t")
            mutant = by_place.get("\t".join((path, function, change)))
            if mutant is not None and stamp == self._stamp(mutant, Outcome(outcome)):
                found[mutant] = Result(mutant, Outcome(outcome), by, int(tests))
        return found

    def _stamp(self, mutant: Mutant, outcome: Outcome) -> str:
        return self._sources[mutant.path] if outcome in (Outcome.KILLED, Outcome.TIMED_OUT) else self._all


def explained() -> dict[str, str]:
    """Return the reason for each survivor that is explained, by its place."""
    lines = [line for line in EXPLAINED.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.rsplit("\t", 1) for line in lines)


KINDS = ("equivalent", "chosen")


def named_test(reason: str) -> str:
    """Return the test that an explanation names: file and function. Return "" for another kind of explanation. Raises
    ValueError if the explanation has no kind."""
    kind = reason.partition(": ")[0]
    if kind in KINDS:
        return ""
    if "::" not in kind:
        raise ValueError(f"the explanation must begin with {', '.join(KINDS)} or a test: {reason}")
    return kind


def noticed_share(results: Sequence[Result]) -> float:
    """Return the share of the mutants that the tests notice."""
    return sum(each.is_noticed for each in results) / len(results) if results else 1.0


def report(results: Sequence[Result], reasons: Mapping[str, str]) -> str:
    """Return the survivors without an explanation, and the figures."""
    counts = Counter(each.outcome for each in results)
    survivors = [each for each in results if not each.is_noticed]
    open_ones = [each for each in survivors if each.mutant.place not in reasons]
    lines = [
        f"{each.outcome}: {each.mutant.path}:{each.mutant.line}: {each.mutant.function}: {each.mutant.change}"
        for each in sorted(open_ones, key=lambda each: (each.mutant.path, each.mutant.line))
    ]
    killed = len(results) - len(survivors)
    return "\n".join(
        [
            *lines,
            f"{len(results)} mutants: {killed} killed ({noticed_share(results):.1%}), {counts[Outcome.TIMED_OUT]} of "
            f"these by a limit; survivors: {len(survivors) - len(open_ones)} explained, {len(open_ones)} open",
        ]
    )
