"""The form in which text is compared."""

from unicodedata import normalize

from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.text import composed, fold, fold_name


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
