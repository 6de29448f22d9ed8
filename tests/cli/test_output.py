"""Tables, JSON and CSV, and the characters that are never printed on a terminal."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.cli.output import print_json, print_rows, safe


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
    """In safe text, line ends are the only characters that are not printable."""
    assert all(each.isprintable() or each == "\n" for each in safe(text))


@given(st.text())
def test_json_escapes_control_characters(text: str) -> None:
    """The JSON output is printable, and parsing it gives the same text."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        print_json({text: [text]})
    assert all(each.isprintable() or each == "\n" for each in out.getvalue())
    assert json.loads(out.getvalue()) == {text: [text]}
