"""How a program tells its errors."""

import pytest

from sallyport.base.errors import StoreError
from sallyport.shell.program import run


def fails(*errors: Exception) -> int:
    """Run a command that fails with a group of errors. Return its exit status."""

    def command() -> None:
        raise ExceptionGroup("tasks", errors)

    return run(command, "sallyport", str)


def test_tasks_that_fail_together(capsys: pytest.CaptureFixture[str]) -> None:
    """If a database goes away, several tasks fail. The program prints one line, and no traceback."""
    away = StoreError("the database is away")
    assert fails(away, ExceptionGroup("more tasks", [away])) == 1
    assert capsys.readouterr().err == "sallyport: the database is away\n"


def test_an_unexpected_error_among_others() -> None:
    """An error of the program itself keeps its traceback, also beside an expected one."""
    with pytest.raises(ExceptionGroup):
        fails(StoreError("the database is away"), ValueError("a bug"))
