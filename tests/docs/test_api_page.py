"""The limits in docs/api/index.md are those of the code."""

from sallyport.areas.directory.service import TRIALS_PER_MINUTE
from sallyport.areas.login.first.trial import PER_MINUTE
from sallyport.areas.mfa.operations import CHECKS_PER_MINUTE
from sallyport.areas.tenancy.guesses import BURST, REFILL_US
from sallyport.base.clock import SECOND
from sallyport.service.app import WRONG_WALLET_KEYS
from sallyport.web.content import MAX_OCTETS_SENT
from sallyport.web.handling import BODY_LIMIT
from sallyport.web.scope import MAX_LARGE_BODIES, MAX_RUNNING
from tests.docs.commands import ROOT


def test_the_page_has_the_limits_of_the_code() -> None:
    """Each limit of the table has the value of its constant."""
    text = (ROOT / "docs/api/index.md").read_text(encoding="utf-8").partition("## Limits\n")[2].partition("\n## ")[0]
    shown = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| ")][1:]
    assert CHECKS_PER_MINUTE == PER_MINUTE == TRIALS_PER_MINUTE
    assert shown == [
        f"{MAX_RUNNING}",
        f"{MAX_LARGE_BODIES}",
        f"1, and further ones up to {MAX_OCTETS_SENT >> 20} MiB in all",
        f"{BODY_LIMIT >> 20} MiB",
        f"{CHECKS_PER_MINUTE} of each in a minute",
        f"{BURST}, then one in {REFILL_US // SECOND} seconds",
        f"{WRONG_WALLET_KEYS}, then one in {REFILL_US // SECOND} seconds",
        "1 at a time",
    ]
