"""The README says all that there is, and nothing that there is not: settings, commands, metrics and operations.

Each list comes from the code itself: what is new there and has no line here fails, and so does a line of what is gone.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import click
import pytest
from pydantic import ValidationError

from sallyport import metrics
from sallyport.app import App
from sallyport.base.config import Settings
from sallyport.base.limits import LIMITS
from sallyport.base.setting_values import MASTER_KEY, PREFIX, environment_name
from sallyport.cli.main import root
from sallyport.deploy.settings_file import shown, without_default
from sallyport.did import public as did_pages
from sallyport.operations import operations as declared_operations
from sallyport.web.scope import Authenticator, DomainOwners, Gate
from tests.metrics.everything import collected, exposed

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NOTHING = object()


def section(title: str) -> str:
    """The text under a heading, up to the next one of its level or above."""
    level, _, _ = title.partition(" ")
    found = re.search(rf"^{re.escape(title)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", README, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the README has no section {title!r}"
    return found[1]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table without its head; an escaped bar is a bar."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")][2:]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def quoted(text: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", text)


SETTINGS = {name: row for row in rows("### Settings") for name in quoted(row[0])}


def test_every_setting_has_a_line() -> None:
    """A field of Settings is in the README's table, and each name in the table is a field."""
    assert SETTINGS.keys() == Settings.model_fields.keys()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_has_its_environment_variable(name: str) -> None:
    """The variable of each setting stands in its line; no variable of the table is unknown to the service."""
    assert environment_name(name) in quoted(SETTINGS[name][1])


def test_every_variable_is_read() -> None:
    """What the README calls SALLYPORT_... anywhere is a setting's variable or the master key's."""
    known = {environment_name(name) for name in Settings.model_fields} | {MASTER_KEY}
    assert set(re.findall(rf"{PREFIX}[A-Z_]+", README)) == known


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_has_its_default_and_its_description(name: str) -> None:
    """The table says what the declaration of the setting says; where there is no default, it says in words what
    holds."""
    field = Settings.model_fields[name]
    words = without_default(name)
    assert SETTINGS[name][2:] == [words or f"`{shown(field.default)}`", field.description]
    assert bool(words) == (shown(field.default) == "")


def test_every_limit_has_its_line() -> None:
    """The limits of a tenant stand in their table, each with its default."""
    told = [(quoted(name)[0], int(most.replace(",", ""))) for name, most, _ in rows("### Limits of a tenant")]
    assert told == [(limit.name, limit.most) for limit in LIMITS]


@pytest.mark.parametrize(("name", "low", "high"), [("duplicate_window_s", 5, 30), ("reject_delay_s", 0, 10)], ids=str)
def test_a_setting_has_its_range(name: str, low: int, high: int) -> None:
    """A setting that is bounded on both sides says so, and refuses what is outside."""
    assert f"({low} to {high})" in SETTINGS[name][3]
    for outside in (low - 1, high + 1):
        with pytest.raises(ValidationError):
            Settings.model_validate({name: outside})


def commands(group: click.Group = root, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that call it: `client import`, `agent key create`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMAND_BY_WORDS = dict(commands())


def told_commands() -> list[str]:
    """What the table of commands calls a command, without the program's name."""
    return [text.removeprefix("sallyport ") for row in rows("### Commands") for text in quoted(" ".join(row))]


@pytest.mark.parametrize("words", COMMAND_BY_WORDS)
def test_every_command_has_a_line(words: str) -> None:
    """A command that can be called is in the README's table of commands."""
    assert any(text == words or text.startswith(words + " ") for text in told_commands())


def test_every_command_of_the_readme_exists() -> None:
    """What the README calls as `sallyport ...`, in text or in an example, is a command."""
    called = re.findall(r"(?:`|bin/)sallyport ([a-z]+)(?: ([a-z-]+))?(?: ([a-z-]+))?", README)
    assert called
    for words in called:
        beginnings = {" ".join(words[:count]) for count in (1, 2, 3)}
        assert beginnings & COMMAND_BY_WORDS.keys(), words


@pytest.mark.parametrize("words", COMMAND_BY_WORDS)
def test_every_option_of_a_line_exists(words: str) -> None:
    """An option that the table of commands shows belongs to the command that it is shown with."""
    known = {option for parameter in COMMAND_BY_WORDS[words].params for option in parameter.opts}
    for text in told_commands():
        if text == words or text.startswith(words + " "):
            assert set(re.findall(r"--[a-z0-9-]+", text)) <= known


@pytest.mark.parametrize("words", COMMAND_BY_WORDS)
def test_every_option_that_a_command_needs_is_shown(words: str) -> None:
    """A line of the table works as it is printed: it has every option without which the command is refused."""
    needed = {p.opts[0] for p in COMMAND_BY_WORDS[words].params if isinstance(p, click.Option) and p.required}
    told = [text for text in told_commands() if text == words or text.startswith(words + " ")]
    assert any(needed <= set(re.findall(r"--[a-z0-9-]+", text)) for text in told)


@pytest.mark.parametrize("words", [words for words in COMMAND_BY_WORDS if words.endswith(" list")])
def test_every_list_has_json(words: str) -> None:
    """'Every list has `--json`' is true."""
    assert "--json" in {option for parameter in COMMAND_BY_WORDS[words].params for option in parameter.opts}


def test_every_metric_has_a_line() -> None:
    """A metric that the service exposes is in the README's table, and each name in the table is exposed."""
    told = [name for row in rows("### Metrics") for name in quoted(row[0])]
    assert len(told) == len(set(told))
    assert set(told) == {exposed(metric) for metric in collected()}


def test_every_class_of_metrics_is_looked_at() -> None:
    """`tests.metrics.everything` makes every class of metrics that there is; a new one has to be added there."""
    made = {
        "AgentMetrics",
        "RadiusMetrics",
        "LoginMetrics",
        "LockoutMetrics",
        "MfaMetrics",
        "CredentialMetrics",
        "UpstreamMetrics",
        "InventoryMetrics",
        "SessionMetrics",
        "DirectoryMetrics",
        "DomainMetrics",
        "DynamicMetrics",
        "PresentationMetrics",
        "StoreMetrics",
        "HttpMetrics",
        "OutletMetrics",
    }
    assert {name for name in vars(metrics) if name.endswith("Metrics")} == made | {"ProcessMetrics"}


class Anything:
    """An object whose attributes are all there, in the place of the wired areas."""

    def __getattr__(self, _name: str) -> "Anything":
        return self


def operations() -> Iterator[str]:
    """The path of every operation; declaring them asks no service for anything."""
    gate = Gate(cast(Authenticator, NOTHING), cast(DomainOwners, NOTHING))
    for declared in declared_operations(cast(App, Anything()), gate):
        for operation in declared.all:
            yield from operation.paths
    yield did_pages.RESOLVE  # a route of its own: it has no body


@pytest.mark.parametrize("path", list(operations()))
def test_every_operation_has_a_line(path: str) -> None:
    """An operation of the API is named in the README by its path."""
    assert path in README


def test_every_operation_of_the_readme_exists() -> None:
    """A path of the API that the README names is one that answers."""
    paths = set(re.findall(r"(?<![\w.])/(?:network_device|ad|api)/[A-Za-z0-9/-]+", README))
    assert paths <= set(operations())


def test_no_placeholder_is_left() -> None:
    """A section that was to be filled in has been."""
    assert not re.findall(r"^(?:[A-Z]{4,}|TODO.*|TBD.*)$", README, re.MULTILINE)
