"""Pages: their bounds, defaults and offsets."""

import pytest
from pydantic import ValidationError

from sallyport.base.validation import refusal
from sallyport.web.paging import LAST, LONG, Page, Paged, PagedByNumber, ShortPaged


def told(model: type[Paged | ShortPaged | PagedByNumber], **values: object) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    return str(refusal(caught.value))


@pytest.mark.parametrize("model", [Paged, ShortPaged, PagedByNumber])
def test_defaults_are_the_first_ten(model: type[Paged | ShortPaged | PagedByNumber]) -> None:
    """Absent and null mean page 1 of 10."""
    nulls = dict.fromkeys(model.model_fields)
    assert model().page() == model.model_validate(nulls).page() == Page(0, 10)


def test_pages_are_counted_from_one() -> None:
    """Page 3 of 20 begins at 40; numbers may be strings."""
    assert Paged.model_validate({"pageId": "3", "pageSize": "20"}).page() == Page(40, 20)
    assert PagedByNumber.model_validate({"pageNumber": 3, "pageSize": 20}).page() == Page(40, 20)


@pytest.mark.parametrize("number", [0, -1, "x", "", 1.5, True, LAST + 1, 2**200, [1]])
def test_a_page_outside_is_named(number: object) -> None:
    """The message is the interface's, word for word."""
    assert told(ShortPaged, pageId=number) == "invalid pageId"
    assert told(Paged, pageId=number) == "invalid pageId"
    assert told(PagedByNumber, pageNumber=number) == "invalid pageNumber"


def test_sizes_end_at_their_maximum() -> None:
    """100 for the device and domain lists, 1000 for the others."""
    assert ShortPaged(pageSize=100).page().size == 100
    assert Paged(pageSize=1000).page().size == 1000
    assert [told(ShortPaged, pageSize=size) for size in (0, 101)] == ["invalid pageSize"] * 2
    assert [told(Paged, pageSize=size) for size in (0, 1001)] == ["invalid pageSize"] * 2


def test_the_last_page_fits_into_the_store() -> None:
    """No page that is taken has an offset beyond 63 bits."""
    assert Paged(pageId=LAST, pageSize=LONG).page().offset < 2**63
