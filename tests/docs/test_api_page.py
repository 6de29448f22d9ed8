"""The limits in docs/api/index.md are those of the code."""

from sallyport.web.content import MAX_OCTETS_SENT
from sallyport.web.handling import BODY_LIMIT
from sallyport.web.scope import MAX_LARGE_BODIES, MAX_RUNNING
from tests.docs.commands import ROOT


def test_the_page_has_the_limits_of_the_code() -> None:
    """Each limit of the table has the value of its constant."""
    text = (ROOT / "docs/api/index.md").read_text(encoding="utf-8").partition("## Limits\n")[2].partition("\n## ")[0]
    shown = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| ")][1:]
    assert shown == [
        f"{MAX_RUNNING}",
        f"{MAX_LARGE_BODIES}",
        f"1, and further ones up to {MAX_OCTETS_SENT >> 20} MiB in all",
        f"{BODY_LIMIT >> 20} MiB",
    ]
