"""What holds for all tests: how they are named, and in which order and where the processes of a parallel run take them.

A file stays in one process, since its tests share what is slow to set up. What waits for real programs and disks is
begun first, so that nothing long is left for the end, when there is nothing to run beside it.
"""

from collections.abc import Sequence

import pytest
import structlog
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("no deadline", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("no deadline")

FIRST = ("tests/peers/", "tests/torture/", "tests/api/", "tests/cli/", "tests/test_", "tests/bench/")
SAMBA = ("tests/peers/test_active_directory", "tests/peers/test_samba.py")
"""Files that use the same domain of Active Directory, which takes half a minute to set up."""


def pytest_configure(config: pytest.Config) -> None:
    """Print tracebacks in log lines as Python does: structlog's default, with source and locals, takes seconds."""
    *others, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, plain])


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name words of a command line as they are typed. Octets and long texts are named by their place: some are random,
    and the processes of a parallel run have to agree on the names of tests."""
    if isinstance(val, tuple) and all(isinstance(each, str) and each.isprintable() for each in val):
        typed = " ".join(val) or "no words"
        return typed if len(typed) <= 60 else None
    is_long = isinstance(val, str) and len(val) > 60
    return argname if is_long or isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort folders by how long their files take; their own order is kept."""
    items.sort(key=lambda item: _rank(item.nodeid, (*SAMBA, *FIRST)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Whole files, in the order of their collection."""
    config.option.loadscopereorder = False
    return Files(config, log)


class Files(LoadScopeScheduling):
    """One file after another to whoever is free; those that share a domain of Active Directory are as one."""

    def _split_scope(self, nodeid: str) -> str:
        return "samba" if nodeid.startswith(SAMBA) else nodeid.partition("::")[0]


def _rank(nodeid: str, folders: Sequence[str]) -> int:
    return next((at for at, folder in enumerate(folders) if nodeid.startswith(folder)), len(folders))
