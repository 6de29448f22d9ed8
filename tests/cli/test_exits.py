"""Exit statuses: every command has those of the table, and the reference shows the table."""

import ast
from pathlib import Path

import sallyport
from docs import reference
from sallyport.shell.exits import ExitStatus

SOURCE = Path(sallyport.__file__).parent


def test_commands_end_with_a_status_of_the_table() -> None:
    """No command ends with a number of its own: `Exit`, and `exit` of a context, get no number."""
    calls = []
    for path in SOURCE.rglob("*.py"):
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(each, ast.Call) and ast.unparse(each.func) in ("click.exceptions.Exit", "ctx.exit"):
                calls.append(each)
    assert len(calls) >= 4
    numbers = [node for call in calls for node in ast.walk(call) if isinstance(node, ast.Constant)]
    assert [each for each in numbers if isinstance(each.value, int)] == []


def test_the_reference_has_the_table() -> None:
    """Each status has a row with its meaning."""
    page = reference.commands()
    assert not [each for each in ExitStatus if f"| {each.value} | {each.meaning} |" not in page]
