"""Searches, filters and pages of devices agree with a model in plain Python."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from sallyport.areas.devices import repo, write_repo
from sallyport.areas.devices.device import Device, Posture
from sallyport.areas.devices.rows import DeviceQuery
from sallyport.store.counters import PART_BITS
from sallyport.store.model import Tx
from tests.store.memory import store_in_memory

OURS, THEIRS = 1, 12
PART = 1 << PART_BITS
FILTERS = ("device_name", "device_type", "ip_address", "client_ip", "nas_port_type", "nas_identifier")
ADDRESSES = ("192.0.2.1", "192.0.2.11", "10.20.30.40", "2001:db8::1", "fe80::1%eth0")
MEDIA = ("Ethernet", "Wireless", "Unknown")
NAMES = (
    'say "hello"',
    '"',
    "a*",
    "AND",
    "sw AND ap OR NOT fw",
    "NEAR(sw ap, 5)",
    "-minus",
    "texts:sw",
    "{texts} : sw",
    "^first + next",
    "semi;colon--'quote'",
    "back\\slash %_?",
    "00-1A-2B-3C-4D-5E:guest wifi",
    "ZÜRICH-größe-İstanbul",
    "ДОМ-дом",
    "東京-本社-無線",
    "\U0001f512 door \U0001f6aa",
    "nul\ufffd tab\t line\nend",
    "aaaaaaaaaaaaaaaa",
)
LETTERS = st.one_of(
    st.sampled_from("abAB1. -:\"*'éÉßK\u0130Σς\u017f東\U0001f512"), st.characters(exclude_categories=["Cs"])
)
TEXTS = st.text(LETTERS, max_size=12)


@pytest.fixture
def tx() -> Iterator[Tx]:
    """A transaction on an empty store, for one test."""
    with store_in_memory() as tx:
        yield tx


def new_device(domain_id: int, name: str, product: str = "Unknown", *addresses: str, medium: str = "Unknown") -> Device:
    """Return a device as a request shows it: its name is its NAS-Identifier, or else its product."""
    source, client_ip = addresses or ("192.0.2.1", "192.0.2.1")
    device = Device(domain_id, source, client_ip, name, 1)
    device.device_type, device.nas_port_type = product, medium
    device.device_name = name or product
    return device


def _indexed(text: str) -> str:
    """Return a text as the index has it: NUL and the separator of texts are one and the same character."""
    return text.casefold().translate({0: "\ufffd", 0x1F: "\ufffd"})


def meant(devices: list[Device], query: DeviceQuery) -> list[int]:
    """Return the IDs that a query selects in the model."""

    def holds(device: Device) -> bool:
        texts = (device.device_name, device.device_type, device.ip_address, device.client_ip)
        compared = [device.device_name, device.device_type]
        if query.column not in {"", "device_name"}:
            compared = [getattr(device, query.column)]
        return (
            device.domain_id == query.domain_id
            and any(_indexed(query.search) in _indexed(text) for text in texts)
            and (not query.column or query.value.casefold() in {text.casefold() for text in compared})
        )

    return sorted(device.id or 0 for device in devices if holds(device))


def ask(tx: Tx, query: DeviceQuery) -> tuple[list[int], int]:
    """Return the IDs and the total that the store gives."""
    rows, total = repo.page(tx, query)
    assert {row.domain_id for row in rows} <= {query.domain_id}
    return [row.id for row in rows], total


def agrees(tx: Tx, devices: list[Device], search: str = "", column: str = "", value: str = "") -> list[int]:
    """Assert that the results for both domains are those of the model, and return the IDs of the first domain."""
    for domain_id in (THEIRS, OURS):
        query = DeviceQuery(domain_id, search=search, column=column, value=value, limit=1000)
        ids = meant(devices, query)
        assert ask(tx, query) == (ids, len(ids)), (search, column, value)
    return ids


def register_all(tx: Tx) -> list[Device]:
    """Register each name in each domain, with varying products, addresses and media."""
    devices = []
    for number, name in enumerate(NAMES):
        for domain_id in (OURS, THEIRS):
            addresses = (ADDRESSES[number % 5], ADDRESSES[number % 3])
            device = new_device(domain_id, name, ("Cisco ISE", name)[number % 2], *addresses, medium=MEDIA[number % 3])
            assert write_repo.register(tx, device)
            devices.append(device)
    return devices


def test_every_part_of_a_name_finds_it(tx: Tx) -> None:
    """A substring of any length finds the name; quotes and operators of the index's query language are plain
    letters."""
    devices = register_all(tx)
    for device in devices[::2]:
        name = device.device_name
        parts = {name[start:end] for start in range(len(name)) for end in range(start + 1, len(name) + 1)}
        for part in parts:
            assert device.id in agrees(tx, devices, part)
            assert device.id in agrees(tx, devices, part.upper())


@pytest.mark.parametrize(
    "search", ["", "192.0.2.1", "0.2.1", "192.0.2.111", "::", "%ETH", "cisco", "O I", "zzz", "a" * 300]
)
def test_addresses_and_products_are_searched(tx: Tx, search: str) -> None:
    """Parts of addresses and products are found; other texts are not."""
    agrees(tx, register_all(tx), search)


@pytest.mark.parametrize("search", ["frontdoor", "front door", "tdoor", "td", "ab", "a b", "unknown1", "b1", "1192"])
def test_a_search_does_not_span_two_fields(tx: Tx, search: str) -> None:
    """The end of a name together with the beginning of the product matches nothing."""
    devices = [new_device(OURS, "front", "door"), new_device(OURS, "a", "b"), new_device(THEIRS, "frontdoor", "ab")]
    for device in devices:
        write_repo.register(tx, device)
    assert agrees(tx, devices, search) == []


@pytest.mark.parametrize("search", ["1", "2", "21", "12", "12-sw", "2-sw"])
def test_domains_with_similar_numbers_are_separate(tx: Tx, search: str) -> None:
    """A domain's number followed by a name never matches the number of another domain."""
    devices = [new_device(domain_id, name) for domain_id in (1, 12, 121) for name in ("2", "21", "1", "12-sw")]
    for device in devices:
        write_repo.register(tx, device)
    agrees(tx, devices, search)


@pytest.mark.parametrize("column", FILTERS)
@pytest.mark.parametrize("search", ["", "o", "192.0.2"])
def test_a_filter_with_a_search_compares_without_case(tx: Tx, column: str, search: str) -> None:
    """Each existing value is filtered for in upper and lower case, and an unknown value."""
    devices = register_all(tx)
    values = {str(getattr(device, column)) for device in devices}
    for value in {*values, *map(str.upper, values), *map(str.lower, values), "nobody's"}:
        agrees(tx, devices, search, column, value)
    if column == "device_name":
        assert len(agrees(tx, devices, "", column, "cisco ise")) == len(NAMES[::2])


@pytest.mark.parametrize(
    ("search", "column", "value"),
    [
        ("", "", ""),
        ("n", "", ""),
        ("192.0", "", ""),
        ("", "device_name", "Cisco ISE"),
        ("e", "ip_address", "192.0.2.1"),
    ],
)
def test_pages_have_each_device_once(tx: Tx, search: str, column: str, value: str) -> None:
    """Pages are in order of ID, each with the same total; a page after the last is empty."""
    devices = register_all(tx)
    for size in (1, 3, 100):
        found: list[int] = []
        whole = meant(devices, DeviceQuery(OURS, search=search, column=column, value=value))
        for offset in range(0, len(whole) + 2 * size, size):
            query = DeviceQuery(OURS, search=search, column=column, value=value, offset=offset, limit=size)
            ids, total = ask(tx, query)
            assert total == len(whole)
            found += ids
        assert found == whole


def test_a_late_page_is_a_part_of_the_whole_list(tx: Tx) -> None:
    """A late page is right after deletions and if rows of another domain are between."""
    for number in range(2 * PART):
        write_repo.register(tx, new_device(THEIRS if number % 3 else OURS, f"sw-{number}"))
    every = [row for (row,) in tx.rows("select id from devices where domain_id = :d order by id", d=THEIRS)]
    for row in repo.by_ids(tx, THEIRS, [int(str(row_id)) for row_id in every[7:PART:100]]):
        write_repo.delete(tx, row, "", 2)
        every.remove(row.id)
    for offset in (0, PART, PART + 1, len(every) - 3, len(every), 10 * PART):
        ids, total = ask(tx, DeviceQuery(THEIRS, offset=offset, limit=5))
        assert (ids, total) == (every[offset : offset + 5], len(every)), offset


@settings(deadline=None)
@given(names=st.lists(TEXTS, min_size=1, max_size=6), search=TEXTS, data=st.data())
def test_any_substring_is_found(names: list[str], search: str, data: st.DataObject) -> None:
    """A random text and a random part of a name, in random case, are found as in the model."""
    part = data.draw(st.sampled_from(names))[data.draw(st.integers(0, 6)) :][: data.draw(st.integers(1, 8))]
    with store_in_memory() as tx:
        devices = [new_device(OURS, name, client) for name, client in zip(names, reversed(names), strict=True)]
        devices = [device for device in devices if write_repo.register(tx, device)]
        for text in (search, part, part.upper(), part.swapcase()):
            agrees(tx, devices, text)
            agrees(tx, devices, "", "device_name" if text else "", text)


class Inventory(RuleBasedStateMachine):
    """Random registrations, product changes, deletions and returns of devices; the index follows each step."""

    devices = Bundle("devices")

    def __init__(self) -> None:
        super().__init__()
        self._context = store_in_memory()
        self.tx = self._context.__enter__()
        self.present: list[Device] = []

    def teardown(self) -> None:
        """Check that the index agrees with its texts."""
        self.tx.execute("insert into devices_search (devices_search) values ('integrity-check')")
        self._context.__exit__(None, None, None)

    @rule(
        target=devices,
        domain_id=st.sampled_from((OURS, THEIRS)),
        name=TEXTS,
        product=TEXTS,
        source=st.sampled_from(ADDRESSES),
        client_ip=st.sampled_from(ADDRESSES),
    )
    def register(self, domain_id: int, name: str, product: str, source: str, client_ip: str) -> Device:
        device = new_device(domain_id, name, product, source, client_ip)
        if write_repo.register(self.tx, device):
            self.present.append(device)
            return device
        return next(each for each in self.present if each.id == device.id)

    @rule(device=devices, product=TEXTS, medium=st.sampled_from(MEDIA), requests=st.integers(0, 9))
    def flush(self, device: Device, product: str, medium: str, requests: int) -> None:
        if device not in self.present:
            assert write_repo.flush(self.tx, [(device, requests, Posture())]).deleted
            return
        device.device_type, device.nas_port_type = product, medium
        device.device_name = device.nas_identifier or product
        assert not write_repo.flush(self.tx, [(device, requests, Posture())]).deleted

    @rule(device=consumes(devices))
    def delete(self, device: Device) -> None:
        for row in repo.by_ids(self.tx, device.domain_id, [device.id or 0]):
            write_repo.delete(self.tx, row, "", 2)
        self.present = [each for each in self.present if each is not device]

    @rule(search=TEXTS)
    def search(self, search: str) -> None:
        agrees(self.tx, self.present, search)

    @rule(device=devices, start=st.integers(0, 6), length=st.integers(1, 8), column=st.sampled_from(("", *FILTERS)))
    def search_part(self, device: Device, start: int, length: int, column: str) -> None:
        value = str(getattr(device, column)) if column else ""
        for text in (device.device_name, device.device_type, device.client_ip):
            agrees(self.tx, self.present, text[start : start + length], column if value else "", value)

    @invariant()
    def the_total_is_exact(self) -> None:
        agrees(self.tx, self.present)


TestInventory = Inventory.TestCase
TestInventory.settings = settings(deadline=None, max_examples=50, stateful_step_count=30)
