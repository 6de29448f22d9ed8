"""Tests of the runner of mutants: made-up modules with mutants that a test notices, and others."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from tests.mutants.areas import AREAS, Area
from tests.mutants.children import End, Job, Say, run_all
from tests.mutants.loading import RECORD, instrumented
from tests.mutants.mutations import Source
from tests.mutants.results import Outcome, Result, Results, explained, report

ROOT = Path(__file__).parents[2]
SOURCE = '''
LIMIT = 3
ROLES = frozenset({"admin"})


def is_small(number: int) -> bool:
    """Return whether a number is small."""
    return number < LIMIT


def is_one(number: int) -> bool:
    return number == 1


def unused(number: int) -> int:
    return number + 1
'''
TESTS = """
from sums import LIMIT, ROLES, is_one, is_small

def test_small():
    assert is_small(0) and not is_small(99)

def test_the_limit():
    assert not is_small(3)

def test_nothing():
    is_one(1)

def test_roles():
    assert "admin" in ROLES
"""


def source_of(folder: Path, text: str) -> Source:
    file = folder / "made.py"
    file.write_text(text)
    return Source("made.py", file)


def run(folder: Path, *, seed: int = 1) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "tests.mutants", "--source", "sums.py", "--tests", "test_sums.py"]
    environ = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [*words, "--root", str(folder), "--seed", str(seed), "--jobs", "1"],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run(tmp_path: Path) -> None:
    """Each mutant is in the result file: killed, survived, or without a test. A second run
    reads that file, and starts no test."""
    (tmp_path / "sums.py").write_text(SOURCE)
    (tmp_path / "test_sums.py").write_text(TESTS)
    done = run(tmp_path)
    assert done.returncode == 1, done.stderr
    lines = (tmp_path / "build/mutants/own/mutants.tsv").read_text().splitlines()
    found = {words[4]: words[0] for words in (line.split("\t") for line in lines)}
    assert found == {
        "LIMIT = 3 -> LIMIT = 4": "killed",
        "ROLES = frozenset({'admin'}) -> ROLES = frozenset(set())": "killed",
        "ROLES = frozenset({'admin'}) -> ROLES = frozenset({'adminXX'})": "killed",
        "return number < LIMIT -> return None": "killed",
        "return number < LIMIT -> return number <= LIMIT": "killed",
        "return number < LIMIT -> return number >= LIMIT": "killed",
        "return number == 1 -> return None": "survived",
        "return number == 1 -> return number != 1": "survived",
        "return number == 1 -> return number == 2": "survived",
        "return number + 1 -> return None": "no test",
        "return number + 1 -> return number - 1": "no test",
        "return number + 1 -> return number + 2": "no test",
    }
    boundary = next(line for line in lines if "number <= LIMIT" in line)
    assert "\ttest_sums.py::test_the_limit\t" in boundary
    assert "12 mutants: 6 killed (50.0%)" in done.stdout
    again = run(tmp_path)
    assert "recorded" not in again.stdout
    assert "12 mutants: 6 killed (50.0%)" in again.stdout


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param("a < b", ["a <= b", "a >= b"], id="comparison"),
        pytest.param("a and b", ["a or b"], id="boolean"),
        pytest.param("x if a else b", ["x if not a else b"], id="condition"),
        pytest.param("not a", ["a"], id="negation"),
        pytest.param("f(a, b)", ["f(b, a)"], id="arguments"),
        pytest.param("{a, b}", ["{b}", "{a}"], id="element of a set"),
        pytest.param("a << 2", ["a >> 2", "a << 3"], id="arithmetic and number"),
        pytest.param("'key'", ["'keyXX'"], id="text"),
        pytest.param("'words for people'", [], id="text for people"),
    ],
)
def test_faults_of_an_expression(tmp_path: Path, text: str, changes: Sequence[str]) -> None:
    """An expression is changed in one place at a time."""
    source = source_of(tmp_path, f"y = {text}\n")
    assert [mutant.change for mutant in source.mutants] == [f"y = {text} -> y = {each}" for each in changes]


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param("call(a)", ["call(a) -> pass"], id="call"),
        pytest.param("await call(a)", ["await call(a) -> pass"], id="await"),
        pytest.param("raise Error('for people')", ["raise Error('for people') -> pass"], id="raise"),
        pytest.param("a.b = c", ["a.b = c -> pass"], id="attribute"),
        pytest.param("a = c", [], id="name"),
        pytest.param("return a", ["return a -> return None"], id="return"),
        pytest.param("if a:\n        x = y", ["a -> not a"], id="if"),
        pytest.param("log.info(a, 1)", [], id="log"),
        pytest.param("assert a == 1", [], id="assert"),
    ],
)
def test_faults_of_a_statement(tmp_path: Path, text: str, changes: Sequence[str]) -> None:
    """A statement is deleted if no unknown name remains. Lines of the log are not changed."""
    source = source_of(tmp_path, f"async def f(a: int, c: str) -> None:\n    {text}\n")
    assert [mutant.change for mutant in source.mutants] == changes
    for mutant in source.mutants:
        source.compiled(mutant)


def test_the_same_change_twice(tmp_path: Path) -> None:
    """The second one of two equal changes in a function has a number, so that each has a name of its own."""
    source = source_of(tmp_path, "def f(a):\n    g(a)\n    g(a)\n")
    assert [mutant.change for mutant in source.mutants] == ["g(a) -> pass", "g(a) -> pass #2"]


def test_recorded_statements(tmp_path: Path) -> None:
    """Instrumented code tells the statements in functions that run, also in blocks and nested functions."""
    source = source_of(tmp_path, "def f(a):\n    '''Text.'''\n    if a:\n        return 1\n    return (lambda: 2)()\n")
    lines: list[int] = []
    code = instrumented(source.tree, source.file, 0, lines)
    ran: list[int] = []
    names: dict[str, object] = {RECORD: ran.append}
    exec(code, names)  # noqa: S102  the made-up module
    function = names["f"]
    assert callable(function)
    assert function(0) == 2
    assert [lines[number] for number in ran] == [3, 5]


def fails(say: Say) -> bool:
    say("test 1")
    return False


def sleeps(say: Say) -> bool:
    trio.run(trio.sleep_forever)
    return True


def test_the_ends_of_children() -> None:
    """A child passes, fails, or is stopped because it only sleeps."""
    jobs = [Job("passes", lambda say: True), Job("fails", fails), Job("sleeps", sleeps, idle_s=0.1)]
    ends = {key: (end, said) for key, end, said in run_all(jobs, at_once=3)}
    assert ends == {"passes": (End.PASSED, []), "fails": (End.FAILED, ["test 1"]), "sleeps": (End.STOPPED, [])}


def test_results_of_changed_files(tmp_path: Path) -> None:
    """If a test changes, survivors run again. If a source changes, all its mutants do."""
    source = source_of(tmp_path, "def f(a):\n    g(a)\n    h(a)\n")
    tests = tmp_path / "test_made.py"
    tests.write_text("1")
    area = Area("made", ["made.py"], ["test_made.py"])
    killed, survivor = source.mutants
    results = Results(area, tmp_path, tmp_path)
    results.add(Result(killed, Outcome.KILLED, "a test", 1))
    results.add(Result(survivor, Outcome.SURVIVED, "", 9))
    assert results.of(source.mutants).keys() == {killed, survivor}
    tests.write_text("2")
    assert Results(area, tmp_path, tmp_path).of(source.mutants).keys() == {killed}
    source.file.write_text("def f(a):\n    g(a)\n    h(a)\n\n")
    assert not Results(area, tmp_path, tmp_path).of(source.mutants)


def test_a_survivor_is_explained(tmp_path: Path) -> None:
    """The report lists the survivors without a reason."""
    first, second = source_of(tmp_path, "def f(a):\n    g(a)\n    h(a)\n").mutants
    results = [Result(each, Outcome.SURVIVED, "", 1) for each in (first, second)]
    text = report(results, {first.place: "g only saves time"})
    assert text.splitlines() == [
        "survived: made.py:3: f: h(a) -> pass",
        "2 mutants: 0 killed (0.0%), 0 of these by a limit; survivors: 1 explained, 1 open",
    ]


def test_areas_and_explanations() -> None:
    """Each area has sources and tests, and each explanation is of a file of an area."""
    files = set()
    for area in AREAS.values():
        files |= area.files(ROOT).keys()
        assert all((ROOT / each).exists() for each in [*area.sources, *area.tests]), area.name
        assert area.test_files(ROOT), area.name
    assert {place.partition("\t")[0] for place in explained()} <= files
