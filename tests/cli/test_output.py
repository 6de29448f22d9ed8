"""Tables, JSON and CSV: what people and programs get, and what a terminal never gets."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.cli.output import print_json, print_rows, safe


def test_a_table_has_the_columns_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Lists, booleans and nothing are words; numbers stay as they are."""
    print_rows([{"a_name": "x", "b": [1, 2], "c": True, "d": None, "e": "007", "f": "unseen"}], ("a_name", *"bcde"))
    head, _, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["a", "name", "b", "c", "d", "e"]
    assert line.split() == ["x", "1,", "2", "yes", "007"]


def test_json_comes_entry_by_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """Entries of a generator make one array; no entries make an empty one."""
    rows = [{"a": 1, "b": {"c": ["\u00e9"]}}, {"a": 2}]
    print_rows(iter(rows), ("a",), "json")
    printed = capsys.readouterr().out
    assert json.loads(printed) == rows
    assert "\u00e9" in printed
    print_rows([], ("a",), "json")
    assert capsys.readouterr().out == "[]\n"


def test_csv_has_the_columns_even_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line does not depend on what is there; no cell is a formula."""
    print_rows([], ("a", "b"), "csv")
    print_rows([{"b": "x,y", "a": -1, "c": 3}], ("a", "b"), "csv")
    print_rows([{"a": "=1", "b": ["=1", "x"]}], ("a", "b"), "csv")
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert lines == [["a", "b"], ["a", "b"], ["-1", "x,y"], ["a", "b"], ["'=1", "'=1, x"]]


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_printed(text: str) -> None:
    """Only line ends are left of what is not printable."""
    assert all(each.isprintable() or each == "\n" for each in safe(text))


@given(st.text())
def test_json_escapes_what_a_terminal_obeys(text: str) -> None:
    """The octets printed are harmless, and they still mean the text."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        print_json({text: [text]})
    assert all(each.isprintable() or each == "\n" for each in out.getvalue())
    assert json.loads(out.getvalue()) == {text: [text]}
