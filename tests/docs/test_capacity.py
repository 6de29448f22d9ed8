"""The page about capacity has the figures and the formula of `sallyport bench`."""

from sallyport.cli.benchmark.capacity import CROWD, USABLE, figures, records
from tests.docs.capacity import PAGE, tables, written


def test_the_page_has_the_figures_of_the_command() -> None:
    """The tables of the page are those that the figures and the formula give. `python -m tests.docs.capacity` writes
    them."""
    text = PAGE.read_text(encoding="utf-8")
    assert all(table in text for table in tables().values())
    assert written(text) == text


def test_the_page_names_the_terms_of_the_formula() -> None:
    """The page has the values that the formula uses, the machine of the figures and their date."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{USABLE:g} is the share of a core" in text
    assert f"{records():g} accounting records" in text
    assert f"{records(interim_s=600):g} records" in text
    assert f"{CROWD:g} times the processor time" in text
    assert f"{figures().octets['event']} octets" in text and f"{figures().octets['record']} octets" in text
    assert figures().machine in text and figures().date in text
