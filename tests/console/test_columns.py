"""The cells of lists, as HTML."""

import pytest

from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, Kind, as_duration, breakable, cell, with_cells

HOSTILE = "<b title='\"'>&"
ESCAPED = "&lt;b title=&#x27;&quot;&#x27;&gt;&amp;"


@pytest.mark.parametrize(
    ("kind", "value", "html"),
    [
        ("text", HOSTILE, ESCAPED),
        ("text", ["a", HOSTILE], f"a, {ESCAPED}"),
        ("text", 0, "0"),
        ("text", "", '<span class="none">&ndash;</span>'),
        ("text", None, '<span class="none">&ndash;</span>'),
        ("code", HOSTILE, f"<code>{ESCAPED}</code>"),
        ("mac", "AA-BB-CC-DD-EE-FF", "<code>aa:bb:cc:dd:ee:ff</code>"),
        ("mac", HOSTILE, f"<code>{ESCAPED}</code>"),
        ("outcome", HOSTILE, f'<span class="outcome {ESCAPED}">{ESCAPED}</span>'),
        ("time", "2026-11-28T05:00:00.25Z", '<time datetime="2026-11-28T05:00:00.25Z">2026-11-28 05:00:00 UTC</time>'),
        (
            "age",
            "2026-11-28T05:00:00Z",
            '<time datetime="2026-11-28T05:00:00Z" data-ago>2026-11-28 05:00:00 UTC</time>',
        ),
        ("verdict", "reject", '<span class="outcome reject">reject</span>'),
        ("verdict", f"reject: {HOSTILE}", f'<span class="outcome reject">reject</span> {ESCAPED}'),
        ("changes", [f"name: {HOSTILE}"], f'<ul class="plain"><li>name: {ESCAPED}</li></ul>'),
        (
            "changes",
            ["expires: 2026-11-28T05:00:00Z → none"],
            '<ul class="plain"><li>expires: <time datetime="2026-11-28T05:00:00Z">2026-11-28 05:00:00 UTC</time> → none'
            "</li></ul>",
        ),
        ("time", "<&", '<time datetime="&lt;&amp;">&lt;&amp; UTC</time>'),
        ("duration", 90, "1 min 30 s"),
        ("share", 0.25, "25 %"),
        ("flag", True, "yes"),
        ("flag", False, "no"),
    ],
)
def test_a_cell_shows_its_value_escaped(kind: Kind, value: JSON, html: str) -> None:
    """The text comes from packets and directories, so no kind of column passes HTML on."""
    assert cell({"key": value}, Column("key", "Title", kind)) == html


@pytest.mark.parametrize(("kind", "text"), [("text", HOSTILE), ("mac", HOSTILE), ("time", "2026-11-28T05:00:00Z")])
def test_a_cell_may_be_a_link(kind: Kind, text: str) -> None:
    """Address and text are escaped, and an empty value has no link."""
    column = Column("key", "Title", kind, link=lambda row: f"/at?{row['key']}&more")
    shown = cell({"key": text}, column)
    address = ESCAPED if text == HOSTILE else text
    assert shown.startswith(f'<a href="/at?{address}&amp;more">')
    assert "<b" not in shown
    assert "<a" not in cell({"key": ""}, column)


def test_the_cells_of_rows() -> None:
    """A cell has the title of its column and the class of its kind. A missing field is shown as an empty value."""
    columns = (Column("name", HOSTILE), Column("count", "Count", "number"), Column("long", "Long", "long"))
    row: Row = {"name": "ann", "count": 3}
    ((found, cells),) = with_cells([row], columns)
    assert found is row
    assert cells == (
        f'<td data-title="{ESCAPED}">ann</td>\n'
        '<td data-title="Count" class="number">3</td>\n'
        '<td data-title="Long" class="long"><span class="none">&ndash;</span></td>\n'
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3725, "1 h 2 min"),
        (7200, "2 h"),
        (90_061, "1 d 1 h"),
        (86_460, "1 d"),
    ],
)
def test_a_duration_has_its_two_largest_parts(seconds: float, text: str) -> None:
    """A part that is 0 is left out."""
    assert as_duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "html"),
    [
        ("dc=acme,dc=example", "dc=<wbr>acme,<wbr>dc=<wbr>example"),
        ("ldap://127.0.0.1:3890", "ldap://<wbr>127.0.0.1:<wbr>3890"),
        ("one word", "one word"),
        (30, "30"),
        ("a,<b>", "a,<wbr>&lt;b&gt;"),
    ],
)
def test_a_long_value_breaks_between_its_parts(value: object, html: str) -> None:
    """A line may break after a separator, and not within a name or a number."""
    assert breakable(value) == html
