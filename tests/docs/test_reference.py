"""The generated reference is complete and agrees with the code."""

import re
from collections.abc import Iterator
from inspect import getsource

import click
import pytest
from pydantic import ValidationError

from docs import reference
from sallyport import metrics
from sallyport.cli.main import root
from sallyport.settings.limits import LIMITS
from sallyport.settings.settings import Settings
from tests.metrics.everything import labelled, registered


def rows(page: str) -> list[list[str]]:
    """Return the cells of each row of a page's tables."""
    lines = re.findall(r"^\| `.*\|$", page, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def commands(group: click.Group = root, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with the words that call it, such as `client import` or `agent key create`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = dict(commands())


def test_every_setting_has_its_variable_default_and_meaning() -> None:
    """The row of a setting has its name, its variable, its default or what replaces it, and its meaning."""
    described = {row[0].strip("`"): row for row in rows(reference.settings())}
    assert described.keys() == Settings.model_fields.keys()
    assert [name for name, row in described.items() if not all(cell.strip("`") for cell in row)] == []
    assert "SALLYPORT_MASTER_KEY" in reference.settings()


def test_a_described_range_is_the_enforced_range() -> None:
    """A range in a description, such as `(5 to 30)`, has the lowest and the highest accepted value."""
    found = 0
    for name, field in Settings.model_fields.items():
        if words := re.search(r"\((\d+) to (\d+)[ )]", field.description or ""):
            found += 1
            for inside, outside in ((int(words[1]), int(words[1]) - 1), (int(words[2]), int(words[2]) + 1)):
                Settings.model_validate({name: inside})
                with pytest.raises(ValidationError):
                    Settings.model_validate({name: outside})
    assert found >= 6


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_and_option_has_help(words: str) -> None:
    command = COMMANDS[words]
    assert command.help
    assert not [each.opts for each in command.params if isinstance(each, click.Option) and not each.help]


@pytest.mark.parametrize("words", [words for words in COMMANDS if words.endswith(" list")])
def test_every_list_command_has_json(words: str) -> None:
    """Every list command has `--json`, as the reference says."""
    assert "--json" in {option for parameter in COMMANDS[words].params for option in parameter.opts}


def test_every_limit_and_metric_has_a_row() -> None:
    """The row of a limit has its default, and the row of a metric has its labels."""
    assert [row[:2] for row in rows(reference.limits())] == [[f"`{each.name}`", f"{each.most:,}"] for each in LIMITS]
    described = {row[0].strip("`").removesuffix("_total"): row for row in rows(reference.metrics())}
    assert described.keys() == {metric.name for metric, _ in labelled()}
    assert described["sallyport_mfa_decisions"][2] == "`domain`, `mode`, `decision`"
    assert described["sallyport_mfa_challenges"][2] == "`provider`, `result`"
    assert described["sallyport_locked_out"][2] == "`kind`"


def test_every_class_of_metrics_is_registered() -> None:
    """`tests.metrics.everything` registers every class of metrics, so that the reference has all metrics."""
    made = getsource(registered)
    classes = [name for name in vars(metrics) if name.endswith("Metrics")]
    assert len(classes) >= 16
    assert not [name for name in classes if f"metrics.{name}(" not in made]
