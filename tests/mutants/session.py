"""pytest in a process of the runner: its arguments, and the run of single tests."""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.children import Say, limit_processor

SELECTED = "not (serial or system or peer or bench)"
"""Tests that measure nothing and start no real program."""


def collect(root: Path, tests: Sequence[str], plugin: object) -> int:
    """Run pytest with a plugin, which runs the collected tests itself. Return its exit status."""
    os.chdir(root)
    arguments = [
        "-q",
        "-m",
        SELECTED,
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
        "-o",
        "timeout=0",
        "--no-header",
        "--no-summary",
    ]
    arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of packages that are imported before the fork
    return int(pytest.main([*arguments, *tests], plugins=[Repeatable(), plugin]))


class Repeatable:
    """A plugin that makes hypothesis try the same examples in each run, and not look for the smallest one."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", deadline=None, derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")


def run_until_failure(items: Sequence[pytest.Item], usual_s: Callable[[str], float], say: Say) -> bool:
    """Run tests until one fails. Return whether all have passed. Tell the name of each."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        say(item.nodeid)
        limit_processor(usual_s(item.nodeid))
        if not passes(item, following):
            return False
    return True


def passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run a test. Return whether it has passed or was skipped."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def clear_caches(files: Sequence[Path]) -> None:
    """Empty the caches of functions of these files, which results of other tests or of the import may be in."""
    names = {str(file) for file in files}
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and getattr(module, "__file__", None) in names:
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()
