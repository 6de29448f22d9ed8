"""Types of options that all commands share."""

import click
import pytest

from sallyport.base.clock import SECOND, from_iso, now_us
from sallyport.base.text import nearest
from sallyport.shell.options import FUTURE, PAST, scope_of


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("12h", 43200), ("90d", 7776000), ("4w", 2419200)])
def test_a_span_begins_now(text: str, seconds: int) -> None:
    """A time span is subtracted from now for a start time, and added to now for an end time."""
    begin = now_us()
    ends = [from_iso(kind.convert(text, None, None)) for kind in (FUTURE, PAST)]
    passed = now_us() - begin
    for at, sign in zip(ends, (1, -1), strict=True):
        assert 0 <= at - (begin + sign * seconds * SECOND) <= passed


@pytest.mark.parametrize("text", ["2027-01-01", "2027-01-01T00:00", "2027-01-01T00:00:00Z", "2027-01-01T01:00+01:00"])
def test_a_time_is_sent_in_utc(text: str) -> None:
    """A time without a time zone is read as UTC."""
    assert PAST.convert(text, None, None) == "2027-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("text", ["soon", "yesterdy", "999999w", "9" * 30, "", "24"])
def test_other_times_are_refused(text: str) -> None:
    """Text is refused if it is neither a time span nor a time, or if the time is beyond the calendar."""
    with pytest.raises(click.BadParameter):
        FUTURE.convert(text, None, None)


def test_a_misspelled_name_gets_a_suggestion() -> None:
    """A similar word is suggested. For a completely different word there is no suggestion."""
    assert nearest("TOKN", ["token", "client"]) == ' Did you mean "token"?'
    assert nearest("cisco isee", ["Cisco ISE", "Aruba Wireless"]) == ' Did you mean "Cisco ISE"?'
    assert nearest("xyz", ["token", "client"]) == ""


@pytest.mark.parametrize(
    ("group", "parameter", "words"),
    [
        ("user", click.Option(["--domain"]), ["--domain", "my corp"]),
        ("provider", click.Argument(["domain"]), ["my corp"]),
        ("domain", click.Argument(["name"]), ["my corp"]),
    ],
    ids=["option", "argument", "name"],
)
def test_a_suggested_command_has_the_given_domain(group: str, parameter: click.Parameter, words: list[str]) -> None:
    """The domain may have been given as an option, as an argument, or as the NAME in its own group."""
    wanted = click.Command("list", params=[click.Option(["--domain"], required=True), click.Option(["--search"])])
    parent = click.Context(click.Group(group), info_name=group)
    context = click.Command("set", params=[parameter]).make_context("set", words, parent=parent)
    assert scope_of(wanted, context) == ["--domain 'my corp'"]
