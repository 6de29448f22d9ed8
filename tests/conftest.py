"""Hooks for all tests: the names of parametrized tests, and the order of files in a parallel run. All tests of a file
run in one process, because they share slow fixtures. Files that wait for real programs and disks take turns with files
that compute, so that the processors are busy, and no long file runs alone at the end.
"""

import gc
import signal
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from sallyport.service.garbage import NEVER
from tests.peers import postgres

if TYPE_CHECKING:
    from tests.console.chromium import Chromium

settings.register_profile("no deadline", deadline=None)  # the duration of an example depends on the load
settings.load_profile("no deadline")

OLD = 100
"""Number of collections of the middle generation after which the oldest one is collected."""
WAITING = (
    "tests/peers/",
    "tests/torture/",
    "tests/cli/",
    "tests/service/",
    "tests/docs/",
    "tests/nodes/",
    "tests/deploy/",
)
"""Folders of tests that mostly wait for other processes."""
SAMBA = ("tests/peers/test_active_directory", "tests/peers/test_samba.py")
"""Files that use the same Active Directory domain, which takes half a minute to set up."""


def pytest_configure(config: pytest.Config) -> None:
    """Print the tracebacks in log lines like Python does. The default of structlog, which prints source and local
    variables, takes seconds. Accept SIGINT: a shell starts its background jobs with SIGINT ignored, and the programs of
    the tests inherit that, so that those that wait for SIGINT do not end.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    *others, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, plain])


def pytest_collection_finish() -> None:
    """Leave the collected tests out of later garbage collections, because they live as long as the process."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def garbage() -> Iterator[None]:
    """Collect the oldest garbage between two tests. In a process of many tests this takes 0.2 s. In the thread that
    writes to the store, this time would count for the limit of a request's write. The service collects in its main
    thread too (`service.garbage`).
    """
    yield
    if gc.get_count()[2] > OLD:
        gc.collect()


@pytest.fixture(scope="session")
def chromium() -> Iterator["Chromium"]:
    """Yield a real browser for all tests of the process. Each call gets a new browser context. The start takes some
    seconds, because the process of the browser imports the modules of the tests.
    """
    from tests.console.chromium import Chromium

    with Chromium() as chromium:
        yield chromium


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the PostgreSQL server of this process. Processes of a parallel run do not call atexit functions when they
    end.
    """
    postgres.close()


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name the words of a command line as they are typed. Name octets and long texts by their position, because some
    are random and the names must be the same in all processes of a parallel run.
    """
    if isinstance(val, tuple) and all(isinstance(each, str) and each.isprintable() for each in val):
        typed = " ".join(val) or "no words"
        return typed if len(typed) <= 60 else None
    is_long = isinstance(val, str) and len(val) > 60
    return argname if is_long or isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let files that wait and other files take turns. The order within a file stays the same."""
    files = [list(tests) for _, tests in groupby(items, key=lambda item: _file(item.nodeid))]
    samba = [file for file in files if _file(file[0].nodeid) == "samba"]
    waiting = [file for file in files if file[0].nodeid.startswith(WAITING) and file not in samba]
    others = [file for file in files if file not in samba and file not in waiting]
    turns = [file for pair in zip(waiting, others, strict=False) for file in pair]
    shortest = min(len(waiting), len(others))
    ordered = [*samba, *turns, *waiting[shortest:], *others[shortest:]]
    items[:] = [item for file in ordered for item in file]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Schedule whole files in the order in which they were collected."""
    config.option.loadscopereorder = False
    return Files(config, log)


class Files(LoadScopeScheduling):
    """A scheduler that gives each free process the next file. Files that use the same Active Directory domain count as
    one file.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _file(nodeid)


def _file(nodeid: str) -> str:
    return "samba" if nodeid.startswith(SAMBA) else nodeid.partition("::")[0]
