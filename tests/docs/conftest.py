"""The program `sallyport` for the commands of the pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.program import quick_program


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the program that the commands run."""
    with quick_program(tmp_path_factory.mktemp("program")) as folder:
        yield folder
