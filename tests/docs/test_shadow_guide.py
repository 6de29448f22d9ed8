"""The comparison of docs/guides/shadow.md, with a log of NPS of its own making."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.areas.shadow.files import Packet, write
from tests.docs.commands import ROOT, Walk, problem, walked

PAGE = "docs/guides/shadow.md"
PASSWORD = "a long word of the test"
USERS = [f"sallyport user add {each} --domain default --password - < bob.password" for each in ("anna", "carl")]
WALK = Walk(
    PAGE,
    before=[f"echo '{PASSWORD}' > bob.password", *USERS],
    fails=["sallyport shadow report IN2611.log"],
)
KINDS = (
    (320, Packet("anna", nas="192.0.2.2", policy="Staff Wi-Fi", called="02-AA-00-00-00-02:Tools")),
    (200, Packet("anna", policy="Staff VPN", port_type=5)),
    (80, Packet("carl", nas="192.0.2.2", policy="Staff Wi-Fi", called="02-AA-00-00-00-02:Tools")),
    (40, Packet("anna", reason=16)),
    (20, Packet("carl", reason=65, policy="No VPN", port_type=5)),
    (20, Packet("bob", nas="192.0.2.2", policy="Staff Wi-Fi", called="02-AA-00-00-00-02:Tools")),
    (20, Packet("anna", nas="192.0.2.3", policy="Staff LAN", port_type=15)),
)


def week() -> Iterator[Packet]:
    """Yield the logins of a week."""
    number, at = 0, datetime(2026, 11, 16)
    for several, packet in KINDS:
        for _ in range(several):
            number += 1
            yield replace(packet, number=number, at=at + timedelta(minutes=14 * number))


def test_the_differences_are_found_and_mended(tmp_path: Path, program: Path) -> None:
    """The first report has the numbers of the page, and the status 1. After mending, nothing differs."""
    write(tmp_path / "IN2611.log", week())
    with walked(WALK, tmp_path, program) as done:
        assert problem(WALK, done) == ""
        shown = re.search(r"```text\n(1400 lines.*?)```", (ROOT / PAGE).read_text(encoding="utf-8"), re.DOTALL)
        assert shown is not None
        printed = done.output("sallyport shadow report IN2611.log")
        for line in shown[1].splitlines():
            words = line.split()
            assert any(each.split()[: len(words)] == words for each in printed.splitlines()), (line, printed)
        assert "700 logins: 700 the same" in done.output("sallyport shadow report --domain default --limit 0%")
        assert "420 logins: 420 the same" in done.output("sallyport shadow report --domain default --device 192.0.2.2")


@pytest.mark.parametrize("name", ["nps", "detail", "linelog", "ise"])
def test_each_format_is_in_the_table(name: str) -> None:
    """The page names all formats of the command."""
    assert f"| `{name}` |" in (ROOT / PAGE).read_text(encoding="utf-8")
