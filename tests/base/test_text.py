"""The form in which text is compared."""

from unicodedata import combining, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.text import MARKS, composed, fold, fold_name, normal


def test_letters_with_accents() -> None:
    """One character or two, any case: one name; another letter is another name."""
    assert composed("Zoe\u0308") == "Zoë"
    assert {fold(name) for name in ("Zoë", "ZOË", "Zoe\u0308", "ZOE\u0308")} == {"zoë"}
    assert fold("Straße") == fold("STRASSE")
    assert fold("Ann") == "ann" != fold("Änn")


def test_spaces_around_a_name() -> None:
    """They are no part of it; those inside are."""
    assert {fold_name(name) for name in ("Ann Lee", " ann lee", "ANN LEE\t", "\u00a0ann lee ")} == {"ann lee"}
    assert fold_name(" ") == ""


@given(st.text())
def test_every_writing_is_one(text: str) -> None:
    """What Unicode holds for the same text is compared alike, and a form that is compared stays what it is."""
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
    """Normalization never sorts a long run of combining marks, which takes a quadratic time."""
    for form in (fold(text), normal("NFKC", text)):
        runs = "".join("m" if combining(each) else " " for each in form).split()
        assert max(map(len, runs), default=0) <= MARKS
    assert fold(fold(text)) == fold(text)


def test_marks_of_languages_are_left_alone() -> None:
    """A text with up to 30 marks behind a letter is in normalization form C."""
    text = "e" + "\u0316\u0301" * 14
    assert fold(text) == normalize("NFC", text)
