"""Tests of the vendors of MAC addresses."""

import os
from pathlib import Path

import pytest

from sallyport.areas.policy.bypass.vendors import FILE, MAX_NAME_LENGTH, Vendors, compact

LARGE = '''\
Registry,Assignment,Organization Name,Organization Address
MA-L,002272,American Micro-Fuel Device Corp.,"2181 Buchanan Loop, Ferndale WA US 98248 "
MA-L,00D0EF,"IGT  ""Games""",9295 PROTOTYPE DRIVE RENO NV US 89511
MA-L,8C1F64,IEEE Registration Authority,445 Hoes Lane Piscataway NJ US 08554
MA-L,AABBC,too short,
MA-L,00000G,no digits,
'''
SMALL = """\
Registry,Assignment,Organization Name,Organization Address
MA-S,8C1F64A1B,A small vendor,Somewhere
"""


def test_the_longest_assignment_counts(tmp_path: Path) -> None:
    """The vendor is that of the longest assignment. A randomised address, and one without an assignment, has none."""
    lines = compact([LARGE.splitlines(True), SMALL.splitlines(True)])
    assert len(lines) == 4
    (tmp_path / FILE).write_text("\n".join(lines))
    vendors = Vendors(tmp_path)
    vendors.load()
    found = {key: vendors.of(key) for key in ("002272000001", "00d0efffffff", "8c1f64a1b001", "8c1f64a1c001")}
    assert list(found.values()) == [
        *("American Micro-Fuel Device Corp.", 'IGT "Games"', "A small vendor", "IEEE Registration Authority"),
    ]
    assert [vendors.of(key) for key in ("002273000001", "022272000001", "ffffffffffff", "000000000000")] == [""] * 4


def test_a_new_file_is_read(tmp_path: Path) -> None:
    """Without a file there is no vendor. A file that was replaced is read again, and a removed one is forgotten."""
    vendors, path, key = Vendors(tmp_path), tmp_path / FILE, "002272000001"
    found = []
    for number, text in enumerate(("", "002272 first\n", "002272 second\n")):
        if text:
            path.write_text(text)
            os.utime(path, ns=(number, number))
        vendors.load()
        found.append(vendors.of(key))
    path.unlink()
    vendors.load()
    assert [*found, vendors.of(key)] == ["", "first", "second", ""]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "<html>"])
def test_another_file_is_refused(text: str) -> None:
    """A file that is not of the IEEE is refused, with the columns that it must have."""
    with pytest.raises(ValueError, match="Organization Name"):
        compact([text.splitlines(True)])


def test_a_long_name_is_cut() -> None:
    """The names of the compact file are bounded."""
    (line,) = compact([[LARGE.splitlines(True)[0], f"MA-L,002272,{'x' * 500},\n"]])
    assert line == f"002272 {'x' * MAX_NAME_LENGTH}"


def test_a_damaged_name_is_shown(tmp_path: Path) -> None:
    """Octets that are not UTF-8 do not hide the other vendors."""
    (tmp_path / "vendors.txt").write_bytes(b"002272 Caf\xe9\n00d0ef IGT\n")
    vendors = Vendors(tmp_path)
    vendors.load()
    assert [vendors.of(key) for key in ("002272000001", "00d0ef000001")] == ["Caf\ufffd", "IGT"]
