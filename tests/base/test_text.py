"""Normal forms of text for comparisons, and texts of messages."""

import ast
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from unicodedata import combining, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.text import (
    MARKS,
    as_cell,
    composed,
    counted,
    existing,
    fold,
    fold_name,
    normal,
    of_cell,
    plain_code,
)

SOURCES = Path(__file__).parents[2] / "src"


CELLS = {
    "=1+1": "'=1+1",
    " =1+1": " '=1+1",
    "\uff1d1+1": "'\uff1d1+1",
    "ann;=1+1": "ann;'=1+1",
    'ann; "=1+1"': 'ann; "\'=1+1"',
    "ann\t=1+1": "ann\t'=1+1",
    "ann\r\n@SUM(A1)": "ann\r\n'@SUM(A1)",
    "-1;+2": "'-1;'+2",
    "'=1": "''=1",
    "a=b; c-d": "a=b; c-d",
    "": "",
}


@pytest.mark.parametrize("text", CELLS)
def test_no_cell_is_a_formula(text: str) -> None:
    """A cell has an apostrophe before each sign that a spreadsheet may read as the beginning of a formula. The import
    of the cell gives the text again."""
    assert as_cell(text) == CELLS[text]
    assert of_cell(as_cell(text)) == text


def test_equal_letters_with_accents_compare_as_equal() -> None:
    """A letter with an accent may be given as one or two characters, in any letter case. A name with a different letter
    is a different name.
    """
    assert composed("Zoe\u0308") == "Zoë"
    assert {fold(name) for name in ("Zoë", "ZOË", "Zoe\u0308", "ZOE\u0308")} == {"zoë"}
    assert fold("Straße") == fold("STRASSE")
    assert fold("Ann") == "ann" != fold("Änn")


def test_spaces_around_a_name_are_ignored() -> None:
    """The number of spaces inside a name matters."""
    assert {fold_name(name) for name in ("Ann Lee", " ann lee", "ANN LEE\t", "\u00a0ann lee ")} == {"ann lee"}
    assert fold_name(" ") == ""


@given(st.text())
def test_equivalent_forms_compare_as_equal(text: str) -> None:
    """All equivalent Unicode forms of a text are folded to the same form. Folding that form again does not change
    it.
    """
    assert fold(text) == fold(normalize("NFD", text)) == fold(normalize("NFC", text)) == fold(fold(text))
    assert composed(normalize("NFD", text)) == composed(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\u0300\u0316" * 40_000, id="marks of two classes"),
        pytest.param("\u0f73" * 80_000, id="letters that decompose to marks"),
        pytest.param("a\u0316\u0300" * 30_000, id="letters with two marks"),
    ],
)
def test_marks_are_sorted_in_short_runs(text: str) -> None:
    """A long run of combining marks is never sorted, because that would take quadratic time."""
    for form in (fold(text), normal("NFKC", text)):
        runs = "".join("m" if combining(each) else " " for each in form).split()
        assert max(map(len, runs), default=0) <= MARKS
    assert fold(fold(text)) == fold(text)


def test_short_runs_of_marks_are_unchanged() -> None:
    """Text in which a letter has up to 30 combining marks is normalized to form C."""
    text = "e" + "\u0316\u0301" * 14
    assert fold(text) == normalize("NFC", text)


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (1, ("device",), "1 device"),
        (0, ("device",), "0 devices"),
        (2, ("device",), "2 devices"),
        (1, ("policy", "policies"), "1 policy"),
        (3, ("policy", "policies"), "3 policies"),
    ],
)
def test_a_count_has_its_noun(number: int, words: tuple[str, ...], expected: str) -> None:
    """The plural of a noun can be given if it is irregular."""
    assert counted(number, *words) == expected


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield the string constants of a module without its docstrings."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def test_no_message_has_a_plural_in_brackets() -> None:
    """A message contains `1 device` or `2 devices`, never a noun with its s in brackets."""
    for path in sorted(SOURCES.rglob("*.py")):
        for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            assert not re.search(r"[a-z]\((?:s|es|ies)\)", text), path


def test_a_suggestion_reads_at_most_1000_names() -> None:
    names = (f"server-{number:07}" for number in count())
    assert existing("server-0000007", names).startswith("; existing: server-0000007, ")
    assert next(names) == "server-0001000"
    assert existing("x", ["a", "b"]) == "; existing: a, b"
    assert existing("x", [str(number) for number in range(7)]).endswith(", and 2 more")


@pytest.mark.parametrize(
    "typed",
    [
        *(
            "123456",
            "123 456",
            "123-456",
            "123\u00a0456",
            "123\u202f456",
            "123\u2009456",
            "123\u2011456",
            "123\u2013456",
        ),
        *(" 123456\n", "12 34 56", "1\u200b23456\ufeff", "123\t456"),
    ],
)
def test_a_code_is_read_as_apps_show_it(typed: str) -> None:
    """Blanks, dashes and invisible characters are removed."""
    assert plain_code(typed) == "123456"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        " ",
        "-",
        "12-34",
        "1234 5678 901",
        "12a456",
        "123.456",
        "123,456",
        "+123456",
        "12\u00b2456",
        "1 " * 21,
        "\u0661\u0662\u0663 456",
    ],
)
def test_another_text_is_no_code(typed: str) -> None:
    """A text with any other character, without a digit, or of too many characters, is unchanged."""
    assert plain_code(typed) == typed
