"""Which tests a mutant gets, and in which order."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.mutants.mutations import Mutant, Source, names_in
from tests.mutants.recording import RanTest

MOST_S = 10.0
"""Processor time that the tests of a mutant may usually take together."""
STATEMENT_S = 0.001
"""A test that takes this time more is as good as one that runs another statement."""


def tests_of(mutant: Mutant, tests: Sequence[RanTest], sources: Mapping[str, Source], root: Path) -> list[RanTest]:
    """Return the tests that may notice a mutant: quick and specific ones first, as many as fit into MOST_S.

    These are the tests that run the statement. For a statement that runs at the import, they are the tests that use its
    name or run a statement with its name, those in the file of its module that use the module, else all that run the
    file.
    """
    names, module = _names(mutant, sources), Path(mutant.path).stem
    own = f"/test_{module}.py::"
    for places in _places(mutant, names, sources):
        lines = {(path, line) for path, numbers in places.items() for line in numbers}
        found = [
            test
            for test in tests
            if any((path, line) in lines for path, ran in test.ran.items() for line in ran)
            or names & names_in_test(root, test.nodeid)
            or (mutant.at_import and own in test.nodeid and module in names_in_test(root, test.nodeid))
        ]
        if found:
            return list(_quick(_varied(found)))
    return []


def _names(mutant: Mutant, sources: Mapping[str, Source]) -> set[str]:
    """Return the names that depend on a statement that runs at the import."""
    if not mutant.at_import:
        return set()
    names, before = {mutant.name} - {""}, set[str]()
    while names != before:
        before = names
        names = names.union(*(source.assigned_from(names) for source in sources.values()))
    return names


def _places(mutant: Mutant, names: set[str], sources: Mapping[str, Source]) -> Iterator[dict[str, set[int]]]:
    """Yield the lines of each file that show that a test may notice a mutant, the best ones first."""
    if not mutant.at_import:
        yield {mutant.path: {mutant.line}}
    else:
        naming = {path: source.lines_naming(names) for path, source in sources.items()}
        yield {**naming, mutant.path: naming[mutant.path] | {mutant.line}}
        yield {mutant.path: {node.lineno for node in sources[mutant.path].statements}}


def names_in_test(root: Path, nodeid: str) -> set[str]:
    """Return the names that the function of a test and its decorators use."""
    file, _, function = nodeid.partition("::")
    return _names_by_function(root / file).get(function.partition("[")[0].rpartition("::")[2], set())


@cache
def _names_by_function(file: Path) -> dict[str, set[str]]:
    functions = (
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {function.name: names_in(function) for function in functions}


def _varied(tests: Sequence[RanTest]) -> list[RanTest]:
    """Return the quick and specific tests first. A second case of a parametrized test comes after the first of all."""
    seen = Counter[str]()
    ordered = []
    for test in sorted(tests, key=lambda test: test.processor_s + STATEMENT_S * test.breadth):
        function = test.nodeid.partition("[")[0]
        ordered.append((seen[function], test))
        seen[function] += 1
    return [test for _, test in sorted(ordered, key=lambda each: each[0])]


def _quick(tests: Sequence[RanTest]) -> Iterator[RanTest]:
    total_s = 0.0
    for test in tests:
        if total_s and total_s + test.processor_s > MOST_S:
            return
        total_s += test.processor_s
        yield test
