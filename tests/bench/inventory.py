"""ListDevices with a large inventory: one domain has 1,000,000 devices, and another tenant has 200,000. The devices of
the two domains are registered alternately, as a login registers them. Then `sallyport serve` is started on the store.
Another benchmark measures logins meanwhile. A device's name has a city, a kind and a number, so that a hundred thousand
devices share each part; a quarter of the devices sends no name. Most devices are behind one of forty RADIUS servers.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from sallyport.areas.devices import repo, write_repo
from sallyport.areas.devices.device import Device
from sallyport.areas.devices.operations import filter_column
from sallyport.areas.devices.rows import DeviceQuery
from sallyport.store.model import Tx
from sallyport.store.sqlite import SqliteStore

from .lists import Tenant, add_tenant, environ_of, measure_inside, measure_outside, open_store, table, tell
from .settings import Settings

LARGE, SMALL = 1_000_000, 200_000
TURN = 5_000  # devices of the large domain in one transaction of the fill; the small domain adds a fifth as many
LOGINS, ROUNDS = 64, 100  # number and size of the batches of new devices after the fill
START_US = 1_767_225_600_000_000

LARGE_CITIES = ("berlin",) * 4 + ("hamburg", "munich", "cologne", "frankfurt", "stuttgart", "leipzig", "dresden")
SMALL_CITIES = ("oslo", "bergen", "trondheim", "stavanger", "bodo")
KINDS = ("sw", "sw", "sw", "sw", "ap", "ap", "ap", "ap", "vpn", "fw")
MEDIA = {"sw": "Ethernet", "ap": "Wireless", "vpn": "Virtual", "fw": "Virtual"}
PRODUCTS = {"sw": "Cisco IOS", "ap": "Aruba Wireless", "vpn": "Cisco ASA", "fw": "Fortinet FortiGate"}
SERVERS = ("Microsoft NPS",) * 4 + ("Cisco ISE",) * 3 + ("Aruba ClearPass",) * 2 + ("FreeRADIUS",)
RARE = ("192.0.2.77", "198.51.100.200", "tromso-core-router", "Omnissa Horizon", "Token Ring")
LONELY = ("192.0.2.78", "198.51.100.201", "berlin-branch-office", "Citrix NetScaler", "FDDI")


@dataclass(frozen=True, slots=True)
class Case:
    """A request of ListDevices: its filter, its domain and its page."""

    name: str
    search: str = ""
    by: str = ""
    value: str = ""
    page: int = 1
    size: int = 10
    small: bool = False

    @property
    def path(self) -> str:
        """Return the path of the operation."""
        return "/network_device/ListDevices"

    def tenant(self, large: Tenant, small: Tenant) -> Tenant:
        """Return the tenant of the list."""
        return small if self.small else large

    def work(self, tenant: Tenant) -> Callable[[Tx], int]:
        """Return the number of matches inside the process."""
        query = self.query(tenant)
        return lambda tx: repo.page(tx, query)[1]

    def body(self, tenant: Tenant) -> dict[str, object]:
        """Return the body of the HTTP request."""
        scope = {"orgId": 1, "tenantId": tenant.number, "domainId": tenant.domain_id}
        chosen = {"filterBy": self.by, "value": self.value}
        return {**scope, "pageId": self.page, "pageSize": self.size, "search": self.search, "filter": chosen}

    def query(self, tenant: Tenant) -> DeviceQuery:
        """Return the query inside the process."""
        return DeviceQuery(
            tenant.domain_id,
            search=self.search,
            column=filter_column(self.by),
            value=self.value,
            offset=(self.page - 1) * self.size,
            limit=self.size,
        )


CASES = (
    Case("first page, 10 entries"),
    Case("first page, 100 entries", size=100),
    Case("page at offset 500,000", page=50_001),
    Case("search: one hit, a word of its own", search="tromso"),
    Case("search: one hit, a full name among many alike", search="hamburg-ap-123462"),
    Case("search: one hit, a full address", search="10.20.30.40"),
    Case("search: part of an address", search="20.30.4"),
    Case("search: no hit, strange letters", search="zzyzx"),
    Case("search: no hit, an address that is not there", search="10.99.30.40"),
    Case("search: common product", search="cisco"),
    Case("search: common city", search="Berlin"),
    Case("search: common city, page at offset 100,000", search="Berlin", page=10_001),
    Case("search: 3 letters, common", search="10."),
    Case("search: 2 letters, common", search="er"),
    Case("search: 2 letters, one hit", search="mn"),
    Case("search: 1 letter, common", search="e"),
    Case("small domain, search: one hit, common in the large one", search="berlin", small=True),
    Case("small domain, search: no hit, common in the large one", search="hamburg", small=True),
    Case("DEVICE_NAME, rare", by="DEVICE_NAME", value=RARE[2]),
    Case("DEVICE_NAME, rare product", by="DEVICE_NAME", value=RARE[3]),
    Case("DEVICE_NAME, common product", by="DEVICE_NAME", value="Cisco ISE"),
    Case("DEVICE_TYPE, rare", by="DEVICE_TYPE", value=RARE[3]),
    Case("DEVICE_TYPE, common", by="DEVICE_TYPE", value="Cisco ISE"),
    Case("IP_ADDRESS, rare", by="IP_ADDRESS", value=RARE[0]),
    Case("IP_ADDRESS, common", by="IP_ADDRESS", value="10.0.0.7"),
    Case("CLIENT_IP, rare", by="CLIENT_IP", value=RARE[1]),
    Case("CLIENT_IP, common", by="CLIENT_IP", value="10.15.0.1"),
    Case("NAS_PORT_TYPE, rare", by="NAS_PORT_TYPE", value=RARE[4]),
    Case("NAS_PORT_TYPE, common", by="NAS_PORT_TYPE", value="Wireless"),
    Case("NAS_IDENTIFIER, rare", by="NAS_IDENTIFIER", value=RARE[2]),
    Case("NAS_IDENTIFIER, common", by="NAS_IDENTIFIER", value="localhost"),
    Case("common search in a rare filter", search="or", by="IP_ADDRESS", value=RARE[0]),
    Case("rare search in a common filter", search="10.20.30.40", by="NAS_PORT_TYPE", value="virtual"),
    Case("common search in a common filter", search="berlin", by="NAS_PORT_TYPE", value="Wireless"),
)


def devices(domain_id: int, count: int, cities: tuple[str, ...], rare: tuple[str, ...]) -> Iterator[Device]:
    """Yield devices of a domain without end. The device in the middle of the first `count` has the rare values."""
    for number in itertools.count():
        kind = KINDS[number // 7 % len(KINDS)]
        host = number * 611_953 % (1 << 20)  # consecutive devices have no consecutive addresses
        client_ip = "10.15.0.1" if number % 20 == 7 else f"10.{16 + (host >> 16)}.{host >> 8 & 255}.{host & 255}"
        name = _name(number, kind, cities[number // 13 % len(cities)])
        server = number // 3 % 40
        source, product = f"10.0.0.{server}", SERVERS[server % len(SERVERS)]
        if number % 5 == 0:  # a device that sends its requests itself
            source, product = client_ip, PRODUCTS[kind]
        medium = MEDIA[kind]
        if number == count // 2:
            source, client_ip, name, product, medium = rare
        device = Device(domain_id, source, client_ip, name, START_US + number)
        device.device_type, device.certainty, device.nas_port_type = product, "certain", medium
        device.device_name = name or product
        device.nas_device_type = PRODUCTS[kind]
        device.evidence = json.dumps({"forwarder": {"product": product, "evidence": ["Proxy-State of 24 octets"]}})
        yield device


def _name(number: int, kind: str, city: str) -> str:
    if number % 4 == 1:
        return ""
    return "localhost" if number % 25 == 10 else f"{city}-{kind}-{number:06}"


def run(settings: Settings) -> str:
    """Fill the store, measure, and return Markdown. Raises BenchmarkError if the service does not start or gives a
    wrong answer.
    """
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), settings.seconds)


def measure(directory: Path, seconds: float) -> str:
    """Do the same as `run` in an empty directory. seconds: the longest time for one row of the table."""
    data = directory / "data"
    environ = environ_of(data)
    large, small = (add_tenant(environ, directory, number) for number in (1, 2))
    told = trio.run(_fill, data, large, small)
    inside = trio.run(measure_inside, data, CASES, large, small, seconds)
    outside = measure_outside(environ, directory, CASES, large, small, seconds)
    return f"{told}\n\n{table(CASES, inside, outside)}"


def _register(tx: Tx, new: list[Device]) -> None:
    for device in new:
        write_repo.register(tx, device)


async def _fill(data: Path, large: Tenant, small: Tenant) -> str:
    """Register all devices, then some more in the way logins do. Return a line with the time that this took."""
    many = devices(large.domain_id, LARGE, LARGE_CITIES, RARE)
    few = devices(small.domain_id, SMALL, SMALL_CITIES, LONELY)
    part = TURN * SMALL // LARGE
    async with open_store(data) as store:
        started = time.monotonic()
        for done in range(0, LARGE, TURN):
            new = [*itertools.islice(many, TURN), *itertools.islice(few, part)]
            await store.write(partial(_register, new=new))
            if done % 100_000 == 0:
                tell(f"{done:,} of {LARGE:,} devices after {time.monotonic() - started:.0f} s")
        filled = time.monotonic() - started
        size = (data / "sallyport.db").stat().st_size / (1 << 20)
        rate = await _logins(store, [[*itertools.islice(many, LOGINS)] for _ in range(ROUNDS)])
    return (
        f"{LARGE + SMALL:,} devices, {size:,.0f} MiB, registered in {filled:.0f} s: {(LARGE + SMALL) / filled:,.0f}/s "
        f"in transactions of {TURN + part:,}. Then in transactions of {LOGINS}, each on disk before the next: "
        f"{rate:,.0f}/s."
    )


async def _logins(store: SqliteStore, batches: list[list[Device]]) -> float:
    """Return the number of new devices that logins register in a second."""
    started = time.monotonic()
    for new in batches:
        await store.write(partial(_register, new=new))
    return sum(map(len, batches)) / (time.monotonic() - started)
