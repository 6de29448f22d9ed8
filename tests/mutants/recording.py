"""The first stage: which statements of an area each test runs, and how long it takes."""

import builtins
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from types import CodeType

import pytest

from tests.mutants.areas import Area, digest
from tests.mutants.children import End, Job, Say, run_all
from tests.mutants.databases import share_server
from tests.mutants.loading import RECORD, import_with, instrumented
from tests.mutants.mutations import Source
from tests.mutants.session import clear_caches, collect, passes

Tell = Callable[[str], None]
IDLE_S = 120.0
"""How long a test may sleep while it is recorded."""


@dataclass(frozen=True, slots=True)
class RanTest:
    """A test that passes. ran: the lines of each source. breadth: the number of statements."""

    nodeid: str
    seconds: float
    processor_s: float
    ran: Mapping[str, Sequence[int]]

    @property
    def breadth(self) -> int:
        return sum(map(len, self.ran.values()))


class Records:
    """The records of an area's tests in a file: one line for each file of tests."""

    def __init__(self, area: Area, root: Path, folder: Path) -> None:
        self._file = folder / "tests.jsonl"
        self._sources = digest(sorted(area.files(root).values()))
        self._tests = {str(file.relative_to(root)): digest([file]) for file in area.test_files(root)}

    def missing(self) -> list[str]:
        """Return the files of tests without a valid record."""
        return sorted(self._tests.keys() - {name for name, _ in self._valid()})

    def add(self, name: str, tests: Sequence[RanTest]) -> None:
        """Store the record of a file of tests."""
        line = {"file": name, "stamp": self._stamp(name), "tests": [asdict(test) for test in tests]}
        with self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def tests(self) -> list[RanTest]:
        """Return all tests with a valid record. The first one of a file also took the time of imports and of shared
        fixtures. It counts like the second one."""
        found = []
        for _, rows in self._valid():
            tests = [RanTest(**row) for row in rows]
            if len(tests) > 1:
                tests[0] = replace(tests[0], processor_s=min(each.processor_s for each in tests[:2]))
            found += tests
        return found

    def _stamp(self, name: str) -> str:
        return f"{self._sources}-{self._tests[name]}"

    def _valid(self) -> Iterator[tuple[str, list[dict]]]:
        if self._file.exists():
            for line in map(json.loads, self._file.read_text().splitlines()):
                if line["file"] in self._tests and line["stamp"] == self._stamp(line["file"]):
                    yield line["file"], line["tests"]


def record(area: Area, root: Path, records: Records, at_once: int, tell: Tell) -> None:
    """Record the tests of the files without a valid record. Raises RuntimeError if they cannot be collected. The
    process must not have imported the project."""
    missing = records.missing()
    if missing:
        recorder = _Recorder(area, root, records, at_once, tell)
        status = collect(root, missing, recorder)
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise RuntimeError(f"pytest has ended with status {status}")
        for name in set(missing) - recorder.found:  # its tests are all of kinds that are not run
            records.add(name, [])


class _Recorder:
    """A plugin that runs each file of tests in a child with instrumented sources."""

    def __init__(self, area: Area, root: Path, records: Records, at_once: int, tell: Tell) -> None:
        self._tell = tell
        self._records = records
        self._at_once = at_once
        self._has_postgres = area.has_postgres
        self._files = area.files(root)
        self._places: list[tuple[str, int]] = []
        self._ran: set[int] = set()
        self._of_fixtures: dict[object, set[int]] = {}
        self.found: set[str] = set()
        codes = {file: self._code(path, file) for path, file in self._files.items()}
        setattr(builtins, RECORD, self._ran.add)
        import_with({file: lambda code=code: code for file, code in codes.items()})

    def _code(self, path: str, file: Path) -> CodeType:
        lines: list[int] = []
        code = instrumented(Source(path, file).tree, file, len(self._places), lines)
        self._places += [(path, line) for line in lines]
        return code

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if self._has_postgres:
            share_server()
        files = {name: list(items) for name, items in groupby(session.items, key=_file)}
        jobs = (Job(name, partial(self._run, items), IDLE_S) for name, items in files.items())
        for key, end, said in run_all(jobs, self._at_once):
            name = str(key)
            self.found.add(name)
            self._records.add(name, [RanTest(**json.loads(line)) for line in said])
            stopped = "" if end is End.PASSED else f", then {end}"
            self._tell(f"recorded {name}: {len(said)} of {len(files[name])} tests pass{stopped}")
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[None]:
        """Remember what the fixture of several tests runs: all tests that use it depend on that."""
        before = set(self._ran)
        self._ran.clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._of_fixtures[fixturedef] = set(self._ran)
            self._ran |= before

    def _run(self, items: Sequence[pytest.Item], say: Say) -> bool:
        """Run the tests of a file in the child, and tell the record of each test that passes."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            if (test := self._measured(item, following)) is not None:
                say(json.dumps(asdict(test)))
        return True

    def _measured(self, item: pytest.Item, following: pytest.Item | None) -> RanTest | None:
        """Run a test. Return its record if it passes."""
        clear_caches(list(self._files.values()))
        self._ran.clear()
        began, worked = time.monotonic(), time.process_time()
        passed = passes(item, following)
        seconds, processor_s = time.monotonic() - began, time.process_time() - worked
        return RanTest(item.nodeid, round(seconds, 3), round(processor_s, 3), self._lines(item)) if passed else None

    def _lines(self, item: pytest.Item) -> dict[str, list[int]]:
        ran = set(self._ran)
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                ran |= self._of_fixtures.get(definition, set())
        lines = defaultdict[str, list[int]](list)
        for path, line in sorted({self._places[number] for number in ran}):
            lines[path].append(line)
        return dict(lines)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
