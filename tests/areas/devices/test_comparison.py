"""The comparison of the inventory with a list from another source."""

import time

import pytest

from sallyport.areas.devices.comparison import MAX_FILE, ComparedDevice, Line, compare, read_list
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid
from tests.areas import Areas
from tests.areas.devices.conftest import Seen

NETBOX = """\
Name,Status,Role,Primary IP,Tags
core-7.example.org,Active,Core,192.0.2.7/24,"dc1,core"
edge-1,Active,Edge,,
spare,Offline,,2001:DB8::9/64,
"""


def test_an_export_of_netbox_is_read() -> None:
    """Addresses lose their prefixes; a version number and a time are no addresses."""
    assert read_list(NETBOX) == [
        Line("core-7.example.org", ("192.0.2.7",)),
        Line("edge-1", ()),
        Line("spare", ("2001:db8::9",)),
    ]
    assert read_list("\ufeffhost;ip;os\r\na;192.0.2.1;15.2\r\n") == [Line("a", ("192.0.2.1",))]
    assert read_list("ip,seen\n192.0.2.1,10:15\n") == [Line("", ("192.0.2.1",))]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("name,ip\n", id="titles only"),
        pytest.param("colour\nred\n", id="no name or address"),
        pytest.param("name\n" + "x\n" * 20_001, id="many lines"),
        pytest.param("name\n" + "x," * 200 + "\n", id="many columns"),
        pytest.param('name\n"' + "x" * 140_000, id="long cell"),
        pytest.param("name\n" + ("1::," * 50 + "\n") * 1_001, id="many addresses"),
    ],
)
def test_a_wrong_list_is_refused(text: str) -> None:
    """The error names the field."""
    with pytest.raises(Invalid) as error:
        read_list(text)
    assert error.value.fields[0].field == "file"


def device(number: int, name: str, client_ip: str, source: str = "", seen: int = 100) -> ComparedDevice:
    """Return a device of the inventory."""
    return ComparedDevice(number, name or "Unknown", "Unknown", source or client_ip, client_ip, name, seen)


def test_lines_and_devices_match_by_name_and_address() -> None:
    """A name with a domain and one without it are the same; two different domains are not."""
    lines = read_list("name,ip\na.example.org,\nb,\nc.example.org,\n,192.0.2.4\nold,192.0.2.5\n")
    found = compare(
        lines,
        [
            device(1, "A", "192.0.2.1"),
            device(2, "b.example.org", "192.0.2.2"),
            device(3, "c.example.net", "192.0.2.3"),
            device(4, "", "192.0.2.4"),
            device(5, "old", "192.0.2.5", seen=10),
        ],
        50,
    )
    assert found.lines == 5
    assert [(line.name, line.last_seen) for line in found.silent] == [("c.example.org", 0), ("old", 10)]
    assert [each.id for each in found.unknown] == [3]


def test_a_proxy_in_the_list_does_not_make_its_devices_known() -> None:
    """The source address shows that the proxy is heard."""
    found = compare(read_list("name,ip\nnps,192.0.2.10\n"), [device(1, "ap", "10.0.0.1", "192.0.2.10")], 50)
    assert found.silent == []
    assert [each.id for each in found.unknown] == [1]


def test_the_costliest_lists_take_linear_time() -> None:
    """20,000 lines with one address, and 100,000 devices with the same one, are not compared pair by pair."""
    lines = read_list("name,ip\n" + "a,192.0.2.1\n" * 20_000)
    devices = [device(number, "a", "192.0.2.1") for number in range(100_000)]
    begun = time.process_time()
    assert compare(lines, devices, 50).unknown == []
    assert time.process_time() - begun < 20  # pair by pair, it takes minutes
    assert len("1:," * (MAX_FILE // 3)) <= MAX_FILE


async def test_a_domain_is_compared(areas: Areas, seen: Seen) -> None:
    """Times that are not written yet count."""
    await seen.device("core-7", "192.0.2.7")
    await seen.device("other", "192.0.2.8")
    found = await areas.devices.compare(areas.tenant, areas.domain, NETBOX, 86_400 * SECOND)
    assert [line.name for line in found.silent] == ["edge-1", "spare"]
    assert [each.device_name for each in found.unknown] == ["other"]
    assert (await areas.devices.compare(areas.tenant, areas.domain + 1, NETBOX, 1)).unknown == []
