"""Tables, JSON and CSV, and the characters that are never printed on a terminal."""

import csv
import io
import json
import sys
import time
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base import log
from sallyport.base.text import printable
from sallyport.base.wire import Row
from sallyport.cli.line import Line
from sallyport.cli.output import Table, only, print_json, print_rows
from sallyport.shell.command import Form
from sallyport.shell.options import with_columns


def test_a_table_has_the_given_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """In a table, lists and booleans are printed as words, None is printed as empty text, and numbers are unchanged."""
    print_rows([{"a_name": "x", "b": [1, 2], "c": True, "d": None, "e": "007", "f": "unseen"}], ("a_name", *"bcde"))
    head, _, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["a", "name", "b", "c", "d", "e"]
    assert line.split() == ["x", "1,", "2", "yes", "007"]


def test_json_of_a_generator_is_one_array(capsys: pytest.CaptureFixture[str]) -> None:
    """A list without entries is printed as an empty array."""
    rows = [{"a": 1, "b": {"c": ["\u00e9"]}}, {"a": 2}]
    print_rows(iter(rows), ("a",), "json")
    printed = capsys.readouterr().out
    assert json.loads(printed) == rows
    assert "\u00e9" in printed
    print_rows([], ("a",), "json")
    assert capsys.readouterr().out == "[]\n"


def test_csv_has_its_header_even_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """CSV has its header even without rows, and no cell is a formula."""
    print_rows([], ("a", "b"), "csv")
    print_rows([{"b": "x,y", "a": -1, "c": 3}], ("a", "b"), "csv")
    print_rows([{"a": "=1", "b": ["=1", "x"]}], ("a", "b"), "csv")
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert lines == [["a", "b"], ["a", "b"], ["-1", "x,y"], ["a", "b"], ["'=1", "'=1, x"]]


@given(st.text())
def test_safe_text_has_no_control_characters(text: str) -> None:
    """In printable text, line ends are the only characters that are not printable."""
    assert all(each.isprintable() or each == "\n" for each in printable(text))


@given(st.text())
def test_json_escapes_control_characters(text: str) -> None:
    """The JSON output is printable, and parsing it gives the same text."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        print_json({text: [text]})
    assert all(each.isprintable() or each == "\n" for each in out.getvalue())
    assert json.loads(out.getvalue()) == {text: [text]}


EVENT: Row = {"time": "2026-01-31T08:00:00.123456Z", "user_name": "ann", "reason": "x" * 90, "id": 12345678901}


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the local time zone to one with an offset."""
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_table_has_short_local_times(zone: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A table shows a time to the second in the local zone, and the header names the zone. CSV is in UTC."""
    print_rows([EVENT], ("time", "user_name"))
    head, _, line = capsys.readouterr().out.splitlines()
    assert (head.split(), line) == (["time", "CET", "user", "name"], "2026-01-31 09:00:00  ann")
    print_rows([EVENT], ("time",), "csv")
    assert "2026-01-31T08:00:00.123456Z" in capsys.readouterr().out


def test_a_column_with_times_among_other_values_says_so(zone: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The header has the name of the column, and says that the zone is that of its times."""
    facts: list[Row] = [{"device": "last_seen", "value": EVENT["time"]}, {"device": "name", "value": "fw1"}]
    print_rows(facts, ("device", "value"))
    assert capsys.readouterr().out.splitlines()[0] == "device     value (times in CET)"


class Terminal(io.StringIO):
    """A text file that says that it is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_table_fits_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is longer than the terminal. Only long texts are cut; times and numbers are whole."""
    monkeypatch.setenv("COLUMNS", str(width))
    terminal = Terminal()
    print_rows([EVENT], ("time", "user_name", "reason", "id"), fits=True, to=terminal)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "12345678901" in lines[-1] and "2026-01-31 " in lines[-1]
    assert ("\u2026" in lines[-1]) is (width < 140)


@pytest.mark.parametrize(
    ("width", "shown"), [(36, ["reason"]), (50, ["station", "reason"]), (90, ["id", "station", "reason"])]
)
def test_a_narrow_table_leaves_out_spare_columns(width: int, shown: list[str]) -> None:
    """Spare columns are left out, in their order, before another column is cut. Later rows have the same columns."""
    row: Row = {"id": 12345678901, "station": "198.51.100.7", "reason": "locked out after many failures"}
    table = Table(("id", "station", "reason"), width, ("id", "station"))
    head, _, line = table.lines([row])
    assert head.split() == shown
    assert "locked out after many failures" in line
    assert len(table.lines([row])[0].split()) == len(line.split())


def test_a_pipe_gets_whole_values(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, nothing is cut."""
    monkeypatch.setenv("COLUMNS", "40")
    print_rows([EVENT], ("reason",), fits=True)
    assert "x" * 90 in capsys.readouterr().out


def test_chosen_columns_are_found_as_the_header_shows_them() -> None:
    """A name is found in any case, with blanks or underscores. A wrong name is refused with the existing ones."""
    rows, names = only([EVENT], ["User Name", "ID"])
    assert (list(rows), names) == ([{"user_name": "ann", "id": 12345678901}], ["user_name", "id"])
    assert list(only([], ["anything"])[0]) == []
    with pytest.raises(click.UsageError, match=r"no column .resaon.; columns: time, user_name, reason, id"):
        only([EVENT], ["resaon"])


def test_further_rows_keep_the_widths_of_the_first() -> None:
    """The header is printed once, and later rows have the columns of the first."""
    table = Table(("user_name", "reason"), 40)
    first = table.lines([EVENT])[-1]
    (line,) = table.lines([{"user_name": "bob", "reason": "no"}])
    assert line.split() == ["bob", "no"]
    assert line.index("no") == first.index("x")


@pytest.mark.parametrize("width", [None, 40])
def test_a_later_cell_is_cut_only_if_its_line_is_too_long(width: int | None) -> None:
    """The first rows may be short. Later values are whole as long as the terminal has room, and always in a pipe."""
    table = Table(("user_name", "reason"), width)
    table.lines([{"user_name": "ann", "reason": "no"}])
    (line,) = table.lines([{"user_name": "ann", "reason": "locked out"}])
    assert line.split() == ["ann", "locked", "out"]
    (line,) = table.lines([EVENT])
    assert ("x" * 90 in line, "\u2026" in line) == (width is None, width is not None)


@pytest.mark.parametrize("columns", ["user_name", "User Name"])
def test_rows_that_follow_have_the_chosen_columns(columns: str) -> None:
    """A list that follows has the chosen columns, however they are spelled. The first row decides their widths."""

    @click.command()
    @click.option("--json", "form", flag_value="json")
    def listing(form: Form | None) -> None:
        show = Line(pytest.fail).rows_printer(("id",), form)
        for rows in ([], [EVENT], [], [EVENT]):
            show(rows)

    def lines(*options: str) -> list[str]:
        return CliRunner().invoke(with_columns(listing), ["--columns", columns, *options]).output.splitlines()

    assert lines() == ["user name", "---------", "ann", "ann"]
    assert [json.loads(line) for line in lines("--json")] == [{"user_name": "ann"}] * 2


@given(
    st.lists(st.lists(st.text("ab cd\n", max_size=60), min_size=3, max_size=3), min_size=1, max_size=5),
    st.integers(min_value=30, max_value=120),
)
def test_any_text_fits(cells: list[list[str]], width: int) -> None:
    """Whatever texts the cells contain, no line is longer than the terminal."""
    rows: list[Row] = [dict(zip("abc", each, strict=True)) for each in cells]
    assert all(len(line) <= width for line in Table(tuple("abc"), width).lines(rows))


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_are_only_for_terminals(no_color: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and the log use colours on a terminal, unless NO_COLOR is set. Other streams never get colours."""
    monkeypatch.setenv("NO_COLOR", no_color)
    for stream, is_terminal in ((Terminal(), True), (io.StringIO(), False)):
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, stream)
        Line(pytest.fail).print("text", colour="green")
        log.configure(form="text")
        log.logger().warning("an_event")
        assert "an_event" in stream.getvalue()
        assert ("\x1b[" in stream.getvalue().partition("an_event")[0]) is (is_terminal and not no_color)
