"""Tests of the runner of mutants: made-up modules with mutants that a test notices, and others."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import trio

from tests.mutants.__main__ import mutants_of, sample
from tests.mutants.areas import AREAS, Area
from tests.mutants.children import MOST_RESTING, RESTS_S, End, Job, Say, has_room, run_all
from tests.mutants.loading import RECORD, instrumented
from tests.mutants.mutations import Source
from tests.mutants.results import Outcome, Result, Results, explained, named_test, report

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
FLAKY = """
from pathlib import Path
from sums import is_one

def test_flaky():
    runs = Path(__file__).with_name("runs")
    count = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (count + 1))
    assert is_one(1) and count < 2
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


def test_a_test_that_fails_without_a_fault(tmp_path: Path) -> None:
    """A test that has noticed mutants, and then fails without a fault, ends the run with its name."""
    (tmp_path / "sums.py").write_text("def is_one(number):\n    return number == 1\n")
    (tmp_path / "test_sums.py").write_text(FLAKY)
    done = run(tmp_path)
    assert done.returncode == 1
    assert "fails without a fault: test_sums.py::test_flaky" in done.stdout
    assert "a stage has failed" in done.stderr


def test_tests_that_cannot_be_collected(tmp_path: Path) -> None:
    """A run whose tests cannot be imported fails. It does not report that no test runs the statements."""
    (tmp_path / "sums.py").write_text(SOURCE)
    (tmp_path / "test_sums.py").write_text("import missing_module\n")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "a stage has failed" in done.stderr
    assert "no test" not in done.stdout


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param("a < b", ["a <= b", "a >= b"], id="comparison"),
        pytest.param("a and b", ["a or b", "b", "a"], id="boolean"),
        pytest.param("a or b or c", ["a and b and c", "b or c", "a or c", "a or b"], id="operands"),
        pytest.param("f(1, a=b, c=d)", ["f(1, c=d)", "f(1, a=b)", "f(2, a=b, c=d)"], id="keyword arguments"),
        pytest.param("fold(a)", ["a"], id="normalization"),
        pytest.param("a.strip()", ["a"], id="method of a text"),
        pytest.param("max(a, b)", ["max(b, a)", "min(a, b)"], id="opposite function"),
        pytest.param("any(a)", ["all(a)"], id="any"),
        pytest.param("x in (a, b)", ["x not in (a, b)", "x in (b,)", "x in (a,)"], id="element of a tuple"),
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
        pytest.param(
            "try:\n        x = 1\n    except (A, B):\n        y = z",
            ["x = 1 -> x = 2", "(A, B) -> (B,)", "(A, B) -> (A,)"],
            id="classes of errors",
        ),
    ],
)
def test_faults_of_a_statement(tmp_path: Path, text: str, changes: Sequence[str]) -> None:
    """A statement is deleted if no unknown name remains. Lines of the log are not changed."""
    source = source_of(tmp_path, f"async def f(a: int, c: str) -> None:\n    {text}\n")
    assert [mutant.change for mutant in source.mutants] == changes
    for mutant in source.mutants:
        source.compiled(mutant)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param(
            "'select a from b where c = :c and d is null for update'",
            [
                "select a from b where true and d is null for update",
                "select a from b where c = :c and true for update",
                "select a from b where c = :c and d is null",
                "select a from b where c = :c and d is not null for update",
            ],
            id="statement",
        ),
        pytest.param(
            "' and at < :now order by at'", [" and true order by at", " and at <= :now order by at"], id="part"
        ),
        pytest.param("'a = :a'", ["true"], id="condition"),
        pytest.param("'where a between 1 and 2'", [], id="between"),
        pytest.param("'where (a = :a or b = :b)'", ["where true", "where (a = :a or true)"], id="parentheses"),
    ],
)
def test_faults_of_sql(tmp_path: Path, text: str, changes: Sequence[str]) -> None:
    """Each condition is left out, and signs are changed. A text for people is no SQL."""
    source = source_of(tmp_path, f"y = {text}\n")
    assert [mutant.change.partition(" -> ")[2] for mutant in source.mutants] == [f"y = {each!r}" for each in changes]


def test_faults_of_sql_in_an_f_string(tmp_path: Path) -> None:
    """The values of an f-string stay as they are, or are left out as a condition."""
    source = source_of(tmp_path, "y = f'update a set b = {c} where {ROW} and d = :d'\nz = f'a text, {c} where'\n")
    assert [mutant.change.partition(" -> ")[2] for mutant in source.mutants] == [
        "y = f'update a set b = {c} where true and d = :d'",
        "y = f'update a set b = {c} where {ROW} and true'",
    ]


def test_faults_of_the_roles_of_an_operation(tmp_path: Path) -> None:
    """The roles in a decorator are changed. Other decorators are not."""
    text = (
        "@cache\n@o.post('/x', roles=READERS)\nasync def f(): ...\n@o.post('/y', roles=OPERATORS)\nasync def g(): ...\n"
    )
    source = source_of(tmp_path, text)
    assert [(mutant.change.partition(" -> ")[2], mutant.at_import) for mutant in source.mutants] == [
        ("o.post('/x', roles=OPERATORS)", True),
        ("o.post('/y', roles=READERS)", True),
        ("o.post('/y', roles=ADMINS)", True),
    ]


def test_the_line_of_a_decorator_in_a_function(tmp_path: Path) -> None:
    """The outer function runs the decorator, even in tests that never call the decorated function."""
    text = "def f(o):\n    @o.post('/x', roles=READERS)\n    def g():\n        return 1\n"
    (mutant, *_) = (each for each in source_of(tmp_path, text).mutants if each.is_role)
    assert (mutant.line, mutant.at_import) == (3, False)


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


def test_a_child_that_sleeps_makes_room() -> None:
    """Beside one child that works, a few may sleep."""
    works, sleeps = SimpleNamespace(slept_s=0), SimpleNamespace(slept_s=RESTS_S)
    assert has_room([sleeps] * MOST_RESTING, 1)  # type: ignore[list-item]
    assert not has_room([sleeps] * (MOST_RESTING + 1), 1)  # type: ignore[list-item]
    assert not has_room([sleeps, works], 1)  # type: ignore[list-item]


def test_a_long_change_shows_its_difference(tmp_path: Path) -> None:
    """The text of a long statement begins a few words before the difference."""
    conditions = " and ".join(f"column{number} = :value{number}" for number in range(20))
    last = source_of(tmp_path, f"y = 'select a from b where {conditions}'\n").mutants[-1].change  # noqa: S608  no database
    before, _, after = last.partition(" -> ")
    assert "column19 = :value19" in before
    assert after.endswith(" and true'")
    assert len(last) < 400


def test_a_sample_is_in_the_order_of_the_source(tmp_path: Path) -> None:
    """The same seed gives the same mutants, and a new line changes few. Neighbours run one after the other."""
    text = "def f(a):\n" + "".join(f"    g(a, {number})\n" for number in range(20))
    mutants = source_of(tmp_path, text).mutants
    chosen = sample(mutants, 7, 1)
    assert chosen == sample(mutants, 7, 1) != sample(mutants, 7, 2)
    assert [each.line for each in chosen] == sorted(each.line for each in chosen)
    changed = sample(source_of(tmp_path, text.replace("f(a):", "f(a):\n    h()")).mutants, 7, 1)
    assert len({each.place for each in chosen} & {each.place for each in changed}) >= 6
    assert sample(mutants, 0, 1) == mutants


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


def test_areas() -> None:
    """Each area has sources and tests."""
    for area in AREAS.values():
        assert all((ROOT / each).exists() for each in [*area.sources, *area.tests]), area.name
        assert area.test_files(ROOT), area.name


def test_each_explanation_is_of_a_mutant() -> None:
    """Each explained place is a mutant of its file, and each test that an explanation names exists."""
    reasons = explained()
    paths = {place.partition("\t")[0] for place in reasons}
    assert paths <= {path for area in AREAS.values() for path in area.files(ROOT)}
    places = {mutant.place for path in paths for mutant in Source(path, ROOT / path).mutants}
    assert reasons.keys() - places == set()
    for test in filter(None, map(named_test, reasons.values())):
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(), test


@pytest.mark.parametrize("reason", ["only saves time", "tests/x.py notices it"])
def test_an_explanation_has_a_kind(reason: str) -> None:
    """A reason without a kind is refused."""
    with pytest.raises(ValueError, match="must begin with"):
        named_test(reason)


def test_a_nested_function_belongs_to_its_area(tmp_path: Path) -> None:
    """The mutants of an area are those of its functions, of functions in them, and of its constants."""
    source = source_of(tmp_path, "A = 1\nB = 2\ndef f():\n    def g():\n        return h(1)\ndef i():\n    return 3\n")
    area = Area("made", ["made.py"], [], functions=["f", "A"])
    functions = {(mutant.function, mutant.name) for mutant in mutants_of(area, {"made.py": source})}
    assert functions == {("f.g", "g"), ("", "A")}
