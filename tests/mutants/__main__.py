"""Run the tests against mutants: `python -m tests.mutants AREA`; see the package."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from tests.mutants.areas import AREAS, Area
from tests.mutants.mutations import Mutant, Source
from tests.mutants.recording import RanTest, Records, record
from tests.mutants.results import Outcome, Result, Results, explained, noticed_share, report
from tests.mutants.running import run_imported, run_killers, run_swapped
from tests.mutants.selection import tests_of

AIM = 0.9
"""The share of mutants that the tests are to notice."""


def main() -> int:
    """Run the command. Return 1 if a survivor is not explained, or fewer mutants than AIM are killed."""
    options = _options()
    area = AREAS[options.area] if options.area else Area("own", options.source, options.tests, sample=0)
    root = options.root.resolve()
    folder = root / "build" / "mutants" / area.name
    folder.mkdir(parents=True, exist_ok=True)
    sources = {path: Source(path, file) for path, file in area.files(root).items()}
    mutants = sample(mutants_of(area, sources), area.sample if options.sample is None else options.sample, options.seed)
    results = Results(area, root, folder)
    _Run(area, root, folder, sources, results, options.jobs).finish(mutants)
    found = list(results.of(mutants).values())
    print(f"{area.name}, seed {options.seed}:\n{report(found, reasons := explained())}")
    are_explained = all(each.is_noticed or each.mutant.place in reasons for each in found)
    return 0 if are_explained and noticed_share(found) >= AIM else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Run the tests against mutants.")
    parser.add_argument("area", nargs="?", choices=sorted(AREAS))
    parser.add_argument("--source", nargs="*", default=[], help="files or folders to change, instead of an area's")
    parser.add_argument("--tests", nargs="*", default=[], help="their tests")
    parser.add_argument("--sample", type=int, help="number of mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of processes")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2], help="folder of sources and tests")
    options = parser.parse_args()
    if not options.area and not (options.source and options.tests):
        parser.error(f"give an area ({', '.join(sorted(AREAS))}), or --source and --tests")
    return options


def mutants_of(area: Area, sources: Mapping[str, Source]) -> list[Mutant]:
    """Return all mutants of an area."""
    every = (mutant for source in sources.values() for mutant in source.mutants)
    mutants = [mutant for mutant in every if mutant.is_role is area.has_roles]
    return [
        each for each in mutants if not area.functions or {*each.function.split("."), each.name} & {*area.functions}
    ]


def sample(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return some of the mutants, the same for the same seed: those with the lowest hashes. So a change of the source
    changes little of the sample.

    size: their number; 0 for all. They are in the order of their files and lines, because the test that has noticed one
    probably notices the next one.
    """

    def position(mutant: Mutant) -> bytes:
        return sha256(f"{seed} {mutant.place}".encode()).digest()

    chosen = sorted(mutants, key=position)[:size] if size else mutants
    return sorted(chosen, key=lambda mutant: (mutant.path, mutant.number))


class _Run:
    """The stages of a run, each in a forked process."""

    def __init__(
        self, area: Area, root: Path, folder: Path, sources: Mapping[str, Source], results: Results, jobs: int
    ) -> None:
        self._area = area
        self._root = root
        self._log = folder / "log"
        self._records = Records(area, root, folder)
        self._sources = sources
        self._results = results
        self._jobs = jobs
        self._terminal = os.fdopen(os.dup(1), "w", buffering=1)

    def finish(self, mutants: Sequence[Mutant]) -> None:
        """Run the tests of all mutants without a valid result."""
        if self._records.missing():
            self._in_process(lambda: record(self._area, self._root, self._records, self._jobs, self._tell))
        tests = self._records.tests()
        chosen = {mutant: tests_of(mutant, tests, self._sources, self._root) for mutant in self._missing(mutants)}
        for mutant, those in chosen.items():
            if not those:
                self._results.add(Result(mutant, Outcome.NO_TEST, "", 0))
        live = {mutant: those for mutant, those in chosen.items() if those and not mutant.at_import}
        self._stage(partial(run_swapped, has_postgres=self._area.has_postgres), live)
        # a fault that does not fit into the live function is imported too
        self._stage(run_imported, {mutant: chosen[mutant] for mutant in self._missing(mutants)})
        names = {each.by for each in self._results.of(mutants).values() if each.outcome is Outcome.KILLED}
        killers = [test for test in tests if test.nodeid in names]
        if chosen and killers:
            self._in_process(lambda: self._check(killers))

    def _check(self, killers: Sequence[RanTest]) -> None:
        run_killers(self._root, killers, self._tell, self._jobs, has_postgres=self._area.has_postgres)

    def _missing(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        known = self._results.of(mutants)
        return [mutant for mutant in mutants if mutant not in known]

    def _stage(self, run: Callable[..., None], tests: Mapping[Mutant, Sequence[RanTest]]) -> None:
        if tests:
            self._in_process(lambda: run(self._root, self._sources, tests, self._keep, self._jobs))

    def _keep(self, result: Result) -> None:
        self._results.add(result)
        mutant = result.mutant
        self._tell(f"{result.outcome}: {mutant.path}:{mutant.line}: {mutant.change}")

    def _tell(self, text: str) -> None:
        print(text, file=self._terminal)

    def _in_process(self, work: Callable[[], None]) -> None:
        """Do work in a forked process, whose output goes to the log."""
        process_id = os.fork()
        if process_id == 0:
            status = 1
            try:
                with self._log.open("a") as log:
                    os.dup2(log.fileno(), 1)
                    os.dup2(log.fileno(), 2)
                work()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        if os.waitpid(process_id, 0)[1]:
            raise SystemExit(f"a stage has failed: see {self._log}")


if __name__ == "__main__":
    sys.exit(main())
