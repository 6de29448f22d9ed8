"""The second and third stage: the tests of each mutant, with the fault in the live function or in the imported file."""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.mutants.children import IDLE_S, End, Job, Say, Work, run_all
from tests.mutants.databases import Databases, share_server
from tests.mutants.loading import import_with
from tests.mutants.mutations import Mutant, Source
from tests.mutants.recording import RanTest
from tests.mutants.results import Outcome, Result
from tests.mutants.session import clear_caches, collect, limit_processor, run_until_failure

LATEST = 3
"""The number of tests that have noticed the mutants before, and that run first."""

Keep = Callable[[Result], None]
Tests = Mapping[Mutant, Sequence[RanTest]]
"""The tests of each mutant, in the order in which they run."""


def run_swapped(
    root: Path, sources: Mapping[str, Source], tests: Tests, keep: Keep, at_once: int, *, has_postgres: bool
) -> None:
    """Run the tests of mutants in functions. The process must not have imported the project."""
    run = (test for those in tests.values() for test in those)
    _collect(root, run, _Swapper(sources, tests, keep, at_once, has_postgres))


class _Swapper:
    """A plugin that runs the tests of each mutant in a child, which has the collected tests."""

    def __init__(
        self, sources: Mapping[str, Source], tests: Tests, keep: Keep, at_once: int, has_postgres: bool
    ) -> None:
        self._databases = Databases() if has_postgres else None
        self._sources = sources
        self._tests = tests
        self._keep = keep
        self._at_once = at_once
        self._killers: defaultdict[str, list[str]] = defaultdict(list)
        """The tests that have noticed mutants of a file, the latest ones first."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = _functions({str(source.file) for source in self._sources.values()})
        if self._databases is not None:
            share_server()
        gc.collect()
        gc.freeze()
        first = {those[0].nodeid: those[0] for those in self._tests.values()}
        usual_s = {test.nodeid: test.processor_s for test in first.values()}
        work = partial(_run_swapped, (), Path(), [items[name] for name in first], usual_s)
        _control(Job(None, work, _idle_s(list(first.values()))))
        for mutant, end, said in run_all(self._jobs(items, functions), self._at_once):
            assert isinstance(mutant, Mutant)
            result = _result(mutant, end, said)
            if result.outcome is Outcome.KILLED:
                self._killers[mutant.path].insert(0, result.by)
            self._keep(result)
            if self._databases is not None:
                self._databases.take_back(mutant)
        return True

    def _jobs(
        self, items: Mapping[str, pytest.Item], functions: Mapping[tuple[str, str, int], Sequence[FunctionType]]
    ) -> Iterator[Job]:
        for mutant, tests in self._tests.items():
            source = self._sources[mutant.path]
            codes = _changed(source.compiled(mutant), functions)
            if not codes or not all(_fits(code, function) for function, code in codes):
                continue
            latest = self._killers[mutant.path][:LATEST]
            own = [items[test.nodeid] for test in sorted(tests, key=lambda test: test.nodeid not in latest)]
            usual_s = {test.nodeid: test.processor_s for test in tests}
            work = partial(_run_swapped, codes, source.file, own, usual_s)
            if self._databases is not None:
                work = partial(_run_with, self._databases.lend(mutant), work)
            yield Job(mutant, work, _idle_s(tests))


def _run_with(adopt: Callable[[], None], work: Work, say: Say) -> bool:
    adopt()
    return work(say)


def _run_swapped(
    codes: Sequence[tuple[FunctionType, CodeType]],
    file: Path,
    items: Sequence[pytest.Item],
    usual_s: Mapping[str, float],
    say: Say,
) -> bool:
    for function, code in codes:
        function.__code__ = code
    clear_caches([file])
    return run_until_failure(items, usual_s.__getitem__, say)


def _functions(files: set[str]) -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return the live functions of files, by file, qualified name and line."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename in files:
            found.setdefault(_key(each.__code__), []).append(each)
    return found


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _changed(
    module: CodeType, functions: Mapping[tuple[str, str, int], Sequence[FunctionType]]
) -> list[tuple[FunctionType, CodeType]]:
    """Return the live functions whose code differs in a module with a fault, each with its new code. A fault in a
    nested function is in the code of the outer function too."""
    found = []
    codes = [module]
    while codes:
        code = codes.pop()
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        found += [(function, code) for function in functions.get(_key(code), ()) if function.__code__ != code]
    return found


def _fits(code: CodeType, function: FunctionType) -> bool:
    """Return whether a live function can take a code. A fault may remove the use of an outer function's variable."""
    return len(code.co_freevars) == len(function.__code__.co_freevars)


def run_imported(root: Path, sources: Mapping[str, Source], tests: Tests, keep: Keep, at_once: int) -> None:
    """Run the tests of mutants in code that the import runs. The process must not have imported the project."""
    _preload()
    source, those = next((sources[mutant.path], those) for mutant, those in tests.items())
    _control(Job(None, partial(_run_imported, root, source, None, those), _idle_s(those)))
    jobs = (
        Job(mutant, partial(_run_imported, root, sources[mutant.path], mutant, those), _idle_s(those))
        for mutant, those in tests.items()
    )
    for mutant, end, said in run_all(jobs, at_once):
        assert isinstance(mutant, Mutant)
        keep(_result(mutant, end, said))


def _run_imported(root: Path, source: Source, mutant: Mutant | None, tests: Sequence[RanTest], say: Say) -> bool:
    if mutant is not None:
        import_with({source.file: lambda: source.compiled(mutant)})
    say("import")
    return collect(root, [test.nodeid for test in tests], _UntilFailure(tests, say)) == pytest.ExitCode.OK


class _UntilFailure:
    """A plugin that runs the collected tests until one fails."""

    def __init__(self, tests: Sequence[RanTest], say: Say) -> None:
        self._order = {test.nodeid: at for at, test in enumerate(tests)}
        self._usual_s = {test.nodeid: test.processor_s for test in tests}
        self._say = say

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        limit_processor(0)
        items = sorted(session.items, key=lambda item: self._order[item.nodeid])
        if not run_until_failure(items, self._usual_s.__getitem__, self._say):
            session.testsfailed += 1
        return True


def run_killers(root: Path, tests: Sequence[RanTest], tell: Say, at_once: int, *, has_postgres: bool) -> None:
    """Run each test that has noticed a mutant once without a fault. Raises RuntimeError if one of them fails, because
    its mutants may have survived. The process must not have imported the project."""
    _collect(root, tests, _Killers(tests, tell, at_once, has_postgres))


def _collect(root: Path, tests: Iterable[RanTest], plugin: object) -> None:
    """Run a plugin with the collected files of these tests. Raises RuntimeError if it has raised an error."""
    status = collect(root, sorted({_file(test) for test in tests}), plugin)
    if status != pytest.ExitCode.OK:
        raise RuntimeError(f"pytest has ended with status {status}")


class _Killers:
    """A plugin that runs each test in a child of its own."""

    def __init__(self, tests: Sequence[RanTest], tell: Say, at_once: int, has_postgres: bool) -> None:
        self._has_postgres = has_postgres
        self._tests = {test.nodeid: test for test in tests}
        self._tell = tell
        self._at_once = at_once

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if self._has_postgres:
            share_server()
        jobs = (
            Job(
                item.nodeid,
                partial(_run_swapped, (), Path(), [item], self._usual_s()),
                _idle_s([self._tests[item.nodeid]]),
            )
            for item in session.items
            if item.nodeid in self._tests
        )
        failed = [str(name) for name, end, _ in run_all(jobs, self._at_once) if end is not End.PASSED]
        for name in failed:
            self._tell(f"fails without a fault: {name}")
        if failed:
            raise RuntimeError("tests that have noticed mutants fail without a fault")
        return True

    def _usual_s(self) -> Mapping[str, float]:
        return {name: test.processor_s for name, test in self._tests.items()}


def _control(job: Job) -> None:
    """Run tests without a fault, as they run with one, and check that they pass."""
    for _, end, said in run_all([job], at_once=1):
        if end is not End.PASSED:
            raise RuntimeError(f"without a fault, a test has {end}: {said[-1:]}")


def _preload() -> None:
    """Import the packages that the project uses, so that the children have them."""
    for name in (
        "pytest_trio",
        "hypothesis",
        "httpx",
        "pydantic",
        "cryptography.x509",
        "psycopg",
        "structlog",
        "starlette",
    ):
        try:
            __import__(name)
        except ImportError:
            continue


def _idle_s(tests: Sequence[RanTest]) -> float:
    return IDLE_S + 10 * max((test.seconds for test in tests), default=0.0)


def _result(mutant: Mutant, end: End, said: Sequence[str]) -> Result:
    outcome = {End.PASSED: Outcome.SURVIVED, End.FAILED: Outcome.KILLED, End.STOPPED: Outcome.TIMED_OUT}[end]
    by = said[-1] if said and end is not End.PASSED else ""
    return Result(mutant, outcome, by, len(said))


def _file(test: RanTest) -> str:
    return test.nodeid.partition("::")[0]
