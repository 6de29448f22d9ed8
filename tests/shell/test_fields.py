"""Options that fill the fields of a request body."""

import json
from enum import StrEnum
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner
from pydantic import Field, SecretBytes

from sallyport.base.model import Model
from sallyport.base.validation import Between
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine
from sallyport.shell.fields import (
    BodyOption,
    by_options,
    field_argument,
    field_option,
    of_tenant,
    option,
    options,
    parameter_of,
    pass_body,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Paint(Model):
    """A body with a field of each kind."""

    colour: Colour = Field(default=Colour.RED, description="Colour of the wall.")
    macForms: list[Literal["one", "two"]] = Field(default_factory=list, description="Forms.")  # noqa: N815
    coaPort: Annotated[int, Between(0, 65535)] = Field(default=3799, description="Port.")  # noqa: N815
    isDry: bool = Field(default=False, description="Whether the paint is dry; see coaPort.")  # noqa: N815
    isGlossy: bool | None = Field(default=None, description="Whether it shines.")  # noqa: N815
    owner: str = Field(description="Owner.")
    users: list[str] | None = Field(default=None, description="Users.")
    labels: list[str] = Field(default_factory=list, description="Labels.")
    dryMinutes: Annotated[int, Between(1, 600)] | None = Field(default=None, description="Wait.")  # noqa: N815


class Safe(Model):
    """A body with a secret."""

    combination: SecretBytes = Field(description="Combination of the safe.")


@click.command()
@field_argument("name", "title")
@options(Paint, "colour", "macForms", "coaPort", "isDry", "isGlossy", "owner", "users", "labels", "dryMinutes")
@field_option("filter.value", "--search", help="Hand-written.")
@pass_body
def paint(line: CommandLine, body: Row) -> None:
    """Print the body."""
    click.echo(json.dumps(body))


def body(*words: str) -> Row:
    done = CliRunner().invoke(paint, [*words])
    assert done.exit_code == 0, done.output
    made: Row = json.loads(done.output)
    return made


def test_only_given_options_are_in_the_body() -> None:
    """Defaults are left to the operation."""
    assert body("wall", "--owner", "me") == {"name": "wall", "owner": "me"}


@pytest.mark.parametrize(("text", "minutes"), [("90", 90), ("90m", 90), ("10h", 600)])
def test_minutes_may_have_a_unit(text: str, minutes: int) -> None:
    """A field that ends with Minutes takes a number of minutes, or a time with a unit. The help names both forms."""
    assert body("wall", "--owner", "me", "--dry-minutes", text)["dryMinutes"] == minutes
    assert "--dry-minutes MINUTES|90m|12h|2d" in CliRunner().invoke(paint, ["--help"]).output


@pytest.mark.parametrize("text", ["11h", "0", "-1", "1.5h", "soon", "1d 2h"])
def test_other_minutes_are_refused(text: str) -> None:
    """The limits of the field apply to a time with a unit too."""
    done = CliRunner().invoke(paint, ["wall", "--owner", "me", "--dry-minutes", text])
    assert done.exit_code == 2


def test_values_have_the_types_of_their_fields() -> None:
    """A flag and yes or no are booleans, numbers are numbers, and a repeatable option is a list."""
    words = ("--mac-form", "one", "--mac-form", "two", "--coa-port", "0", "--is-dry", "--is-glossy", "no")
    assert body("wall", "--owner", "me", *words) == {
        **{"name": "wall", "owner": "me", "coaPort": 0, "isDry": True, "isGlossy": False},
        "macForms": ["one", "two"],
    }


def test_a_path_becomes_an_inner_object() -> None:
    """The field `filter.value` is the field `value` of the object `filter`."""
    assert body("wall", "--owner", "me", "--search", "x")["filter"] == {"value": "x"}


def test_an_empty_text_is_the_empty_list() -> None:
    """`--user ''` clears a list that can be null. In another list, the empty text is an entry, which may be refused."""
    assert body("wall", "--owner", "me", "--user", "")["users"] == []
    assert body("wall", "--owner", "me", "--label", "")["labels"] == [""]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--colour", "green"), "is not one of 'red', 'blue'"),
        (("--coa-port", "65536"), "is not in the range 0<=x<=65535"),
        (("--mac-form", "three"), "is not one of 'one', 'two'"),
        (("--is-glossy", "perhaps"), "is not one of 'yes', 'no'"),
        ((), "Missing option '--owner'"),
    ],
)
def test_the_field_decides_which_values_are_accepted(words: tuple[str, ...], message: str) -> None:
    """Choices, ranges and required fields come from the model."""
    done = CliRunner().invoke(paint, ["wall", *words])
    assert done.exit_code == 2
    assert message in done.output


def test_the_help_is_the_description_with_the_names_of_options() -> None:
    """Defaults are shown, and a description names options instead of fields."""
    text = " ".join(CliRunner().invoke(paint, ["--help"]).output.split())
    assert "--colour [red|blue] Colour of the wall. [default: red]" in text
    assert "Whether the paint is dry; see --coa-port." in text


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (["coaPort"], "--coa-port"),
        (["name"], "TITLE"),
        (["filter", "value"], "--search"),
        (["filter"], "--search"),
        (["users", "name"], "--user"),
        (["outer", "owner"], "--owner"),
    ],
)
def test_a_field_finds_its_parameter(path: list[str], name: str) -> None:
    """The path of a wrong field leads to the option or argument that fills it."""
    found = parameter_of(path, paint.params)
    assert found is not None
    assert name in (*found.opts, (found.name or "").upper())


def test_an_unknown_field_has_no_parameter() -> None:
    assert parameter_of(["pageSize"], paint.params) is None


def test_a_setting_replaces_what_the_field_says() -> None:
    """An option may have another name, another help and another type than its field."""

    @click.command()
    @option(Paint, "isDry", "--dry/--wet", default=None, help="Own words.")
    @pass_body
    def dry(line: CommandLine, body: Row) -> None:
        click.echo(json.dumps(body))

    assert json.loads(CliRunner().invoke(dry, ["--wet"]).output) == {"isDry": False}
    assert json.loads(CliRunner().invoke(dry, []).output) == {}
    assert "Own words." in CliRunner().invoke(dry, ["--help"]).output


def test_the_option_of_a_secret_is_secret() -> None:
    """Messages must not repeat its value."""

    @click.command()
    @options(Safe, "combination")
    @pass_body
    def close(line: CommandLine, body: Row) -> None:
        """Close the safe."""

    (found,) = (each for each in close.params if isinstance(each, BodyOption))
    assert (found.is_secret, found.metavar, found.required) == (True, "-", True)


def test_a_command_of_a_tenant_has_both_ids() -> None:
    """The ids are required."""

    @click.command()
    @of_tenant("safe")
    @pass_body
    def close(line: CommandLine, body: Row) -> None:
        click.echo(json.dumps(body))

    assert json.loads(CliRunner().invoke(close, ["--org", "1", "--tenant", "2"]).output) == {"orgId": 1, "tenantId": 2}
    assert "Missing option '--tenant'" in CliRunner().invoke(close, ["--org", "1"]).output
    assert "orgId of the safe." in CliRunner().invoke(close, ["--help"]).output


def test_messages_name_options() -> None:
    """A field name that is an ordinary word is left alone."""
    assert by_options("coaPort needs colour", paint.params) == "--coa-port needs colour"
