"""Tests of the limits, defaults and offsets of pages."""

import pytest
from pydantic import ValidationError

from sallyport.base.validation import refusal
from sallyport.web.paging import LAST, LONG, Page, Paged, PagedByNumber, ShortPaged


def message_of(model: type[Paged | ShortPaged | PagedByNumber], **values: object) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    return str(refusal(caught.value))


@pytest.mark.parametrize("model", [Paged, ShortPaged, PagedByNumber])
def test_defaults_are_the_first_ten(model: type[Paged | ShortPaged | PagedByNumber]) -> None:
    """If the fields are absent or null, the page is page 1 with 10 entries."""
    nulls = dict.fromkeys(model.model_fields)
    assert model().page() == model.model_validate(nulls).page() == Page(0, 10)


def test_pages_are_counted_from_one() -> None:
    """Page 3 with 20 entries starts at offset 40. The numbers may be strings."""
    assert Paged.model_validate({"pageId": "3", "pageSize": "20"}).page() == Page(40, 20)
    assert PagedByNumber.model_validate({"pageNumber": 3, "pageSize": 20}).page() == Page(40, 20)


@pytest.mark.parametrize("number", [0, -1, "x", "", 1.5, True, LAST + 1, 2**200, [1]])
def test_an_invalid_page_number_is_named(number: object) -> None:
    """The error message contains the name of the field."""
    assert message_of(ShortPaged, pageId=number) == "invalid pageId"
    assert message_of(Paged, pageId=number) == "invalid pageId"
    assert message_of(PagedByNumber, pageNumber=number) == "invalid pageNumber"


def test_the_page_size_has_a_maximum() -> None:
    """The maximum is 100 for the lists of devices and domains, and 1000 for others."""
    assert ShortPaged(pageSize=100).page().size == 100
    assert Paged(pageSize=1000).page().size == 1000
    assert [message_of(ShortPaged, pageSize=size) for size in (0, 101)] == ["invalid pageSize"] * 2
    assert [message_of(Paged, pageSize=size) for size in (0, 1001)] == ["invalid pageSize"] * 2


def test_the_last_page_fits_into_the_store() -> None:
    """The offset of an accepted page always fits into 63 bits."""
    assert Paged(pageId=LAST, pageSize=LONG).page().offset < 2**63
