"""Tests of the model and the firmware that a request tells."""

import pytest

from sallyport.radius.attributes import push_attribute, push_vendor_attribute
from sallyport.radius.packet import ACCESS_REQUEST, Request, SharedSecret, decode, encode_request
from sallyport.radius.vendors import identify
from sallyport.radius.vendors.versions import FIRMWARE, MAX_CHARACTERS, MODELS, Told
from tests.radius.vendors.captures import NAMES, capture

SECRET = SharedSecret(b"s3cret")


def request(*attributes: tuple[int, int, bytes]) -> Request:
    """Return a request with vendor attributes: (vendor, type, value)."""
    octets = push_attribute(1, b"bob") + b"".join(push_vendor_attribute(*each) for each in attributes)
    return decode(encode_request(ACCESS_REQUEST, 7, SECRET, octets), SECRET)


def told(*attributes: tuple[int, int, bytes]) -> tuple[str, str]:
    """Return the model and the firmware that a request with vendor attributes tells."""
    identity = identify(request(*attributes), source="192.0.2.10")
    return identity.model, identity.firmware


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row.product)
def test_a_model_is_read(row: Told) -> None:
    """The attribute of each row in the table of models is the model."""
    assert told((*row.kind, b"S5735-L24P4X")) == ("S5735-L24P4X", "")


@pytest.mark.parametrize("row", FIRMWARE, ids=lambda row: row.product)
def test_a_firmware_is_read(row: Told) -> None:
    """The attribute of each row in the table of firmware is the firmware."""
    assert told((*row.kind, b"V200R021C00SPC600")) == ("", "V200R021C00SPC600")


@pytest.mark.parametrize("row", (*MODELS, *FIRMWARE), ids=lambda row: row.product)
def test_a_row_names_its_source(row: Told) -> None:
    """Each source begins with the letters that the table of products explains."""
    assert set(row.source.partition(":")[0].split(", ")) <= set("PSDM")


def test_packets_of_products_tell_their_model() -> None:
    """Of the recorded packets, those of Huawei and of Microsoft's RRAS tell a model or firmware."""
    found = {name: (capture(name).identity().model, capture(name).identity().firmware) for name in NAMES}
    assert found["huawei-vrp"] == ("VRP", "Huawei VRP Software Version")
    assert found["microsoft-rras"] == ("", "MSRASV5.20")
    others = {name for name, values in found.items() if any(values)}
    assert all(name.startswith(("huawei", "microsoft-")) for name in others), others


def test_a_proxy_changes_nothing() -> None:
    """A forwarded request tells the model of the NAS."""
    forwarded = capture("huawei-vrp").plus("Proxy-State = 0x31", source="192.0.2.99").identity()
    assert forwarded.forwarded
    assert forwarded.model == "VRP"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(b"AR650\0\0", "AR650", id="nul-at-the-end"),
        pytest.param(b" a\r\nb\x1b[31m ", "a  b [31m", id="control-characters"),
        pytest.param(b"x" * 240, "x" * MAX_CHARACTERS, id="long"),
        pytest.param(b"\xff\xfe", "ÿþ", id="not-utf-8"),
        pytest.param(b"\0", "", id="empty"),
    ],
)
def test_a_hostile_value_is_bounded_and_printable(value: bytes, shown: str) -> None:
    """A value is one line of printable text with a maximum length."""
    assert told((2011, 255, value))[0] == shown


def test_an_empty_value_is_passed_over() -> None:
    """If the first of two values is empty, the second one counts."""
    assert told((2011, 255, b" "), (25506, 255, b"S5500"))[0] == "S5500"


@pytest.mark.parametrize(
    ("vendor", "kind"),
    [(14559, 8), (9148, 56), (2352, 112), (7779, 7)],
    ids=["CoovaChilli", "Acme Packet", "Redback", "Infoblox"],
)
def test_the_numbers_of_firmware(vendor: int, kind: int) -> None:
    """These are the numbers of the vendors' dictionaries. The next attribute is not read."""
    assert told((vendor, kind, b"SEOS-12.1.1.4")) == ("", "SEOS-12.1.1.4")
    assert told((vendor, kind + 2, b"SEOS-12.1.1.4")) == ("", "")
