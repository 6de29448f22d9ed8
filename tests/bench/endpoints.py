"""Large lists of endpoints: one domain has 1,000,000 users, 100,000 instances and 2,000 groups, and another tenant has
a tenth as many. The name of a user is a mail address made of a first name, a last name and a number. The name of a
machine is made of a role, a city and a number. A tenth of the users is assigned to an instance, and every group has a
hundred users and ten instances.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from sallyport.areas.users import membership
from sallyport.areas.users.accounts import repo as users
from sallyport.areas.users.accounts.account import UserChange, UserQuery
from sallyport.areas.users.accounts.operations import filter_column
from sallyport.areas.users.groups import repo as groups
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.instances import repo as instances
from sallyport.areas.users.instances.instance import Instance, InstanceQuery
from sallyport.areas.users.membership import GROUPS_OF_INSTANCE, USERS_OF_GROUP, USERS_OF_INSTANCE, Action
from sallyport.base.secret import Secret
from sallyport.store.model import ListQuery, Tx
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault

from .lists import Case, Tenant, add_tenant, environ_of, measure_inside, measure_outside, open_store, table, tell
from .settings import Settings

USERS, INSTANCES, GROUPS = 1_000_000, 100_000, 2_000
SMALLER = 10
TURN = 5_000
START_US = 1_767_225_600_000_000
FIRST = ("anna", "ben", "clara", "david", "emma", "felix", "greta", "hugo", "ida", "jonas")
LAST = ("mueller", "schmidt", "weber", "fischer", "meyer", "wagner", "becker", "schulz", "hoffmann", "koch", "richter")
ROLES, CITIES = ("web", "db", "mail", "app", "jump"), ("berlin", "hamburg", "munich", "cologne", "oslo", "bergen")
_VAULT = Vault(Secret(bytes(32)))


@dataclass(frozen=True, slots=True)
class UserCase:
    """A request of listAllEpmUsers. machine: the position of an instance in the list, or 0 for any instance."""

    name: str
    by: str = ""
    value: str = ""
    machine: int = 0
    page: int = 1
    size: int = 10
    small: bool = False
    path: str = "/api/v1/endpointUsers/listAllEpmUsers"

    def tenant(self, large: Tenant, small: Tenant) -> Tenant:
        """Return the tenant of the list."""
        return small if self.small else large

    def body(self, tenant: Tenant) -> Mapping[str, object]:
        """Return the body of the HTTP request."""
        chosen = {"filterBy": self.by, "value": self.value}
        page = {"pageId": self.page, "pageSize": self.size, "instanceIds": self._machines()}
        return {"domainId": tenant.domain_id, "filter": chosen, **page}

    def work(self, tenant: Tenant) -> Callable[[Tx], int]:
        """Run the same query inside the process, without reading the instances and groups of each user."""
        column, offset = filter_column(self.by), (self.page - 1) * self.size
        value = {"true": "1", "false": "0"}.get(self.value, self.value)
        query = UserQuery(tenant.domain_id, column, value, self._machines(), offset, self.size)
        return lambda tx: users.page(tx, query)[1]

    def _machines(self) -> Sequence[int] | None:
        return [self.machine] if self.machine else None


@dataclass(frozen=True, slots=True)
class NameCase:
    """A request of instances/list, or of listEndpointGroup."""

    name: str
    filter: str = ""
    page: int = 1
    size: int = 10
    small: bool = False
    of_groups: bool = False

    @property
    def path(self) -> str:
        """Return the path of the operation."""
        return "/api/v1/instanceGroup/listEndpointGroup" if self.of_groups else "/api/v1/instances/list"

    def tenant(self, large: Tenant, small: Tenant) -> Tenant:
        """Return the tenant of the list."""
        return small if self.small else large

    def body(self, tenant: Tenant) -> Mapping[str, object]:
        """Return the body of the HTTP request."""
        return {"domainId": tenant.domain_id, "pageId": self.page, "pageSize": self.size, "filter": self.filter}

    def work(self, tenant: Tenant) -> Callable[[Tx], int]:
        """Run the same query inside the process."""
        offset = (self.page - 1) * self.size
        if self.of_groups:
            return lambda tx: groups.page(tx, ListQuery(tenant.domain_id, offset, self.size), self.filter)[1]
        query = InstanceQuery(tenant.domain_id, self.filter, offset=offset, limit=self.size)
        return lambda tx: instances.page(tx, query)[1]


CASES: Sequence[Case] = (
    UserCase("users: first page, 10 entries"),
    UserCase("users: first page, 100 entries", size=100),
    UserCase("users: page at offset 500,000", page=50_001),
    UserCase("users: one hit, a full name", by="userName", value="emma.fischer-123454"),
    UserCase("users: part of a number", by="userName", value="23454"),
    UserCase("users: no hit, strange letters", by="userName", value="zzyzx"),
    UserCase("users: common name", by="userName", value="Becker"),
    UserCase("users: 1 letter, in all", by="userName", value="e"),
    UserCase("users: 1 letter, in half", by="userName", value="1"),
    UserCase("users: 2 letters, common", by="userName", value="er"),
    UserCase("users: 2 letters, rare", by="userName", value="zz"),
    UserCase("users: 3 letters, common", by="userName", value="er-"),
    UserCase("users: 3 letters, in all", by="userName", value="org"),
    UserCase("users: 4 letters, in all", by="userName", value="exam"),
    UserCase("users: 5 letters, in all", by="userName", value="examp"),
    UserCase("users: 6 letters, in all", by="userName", value="exampl"),
    UserCase("users: 11 letters, in all", by="userName", value="example.org"),
    UserCase("users: 11 letters, in all, far behind", by="userName", value="example.org", page=50_001),
    UserCase("users: the mail domain of all", by="userName", value="@example.org"),
    UserCase("users: by id", by="userId", value="123456"),
    UserCase("users: userType of all", by="userType", value="Local User"),
    UserCase("users: userType, rare", by="userType", value="Admin"),
    UserCase("users: assigned to an instance", by="assign", value="true"),
    UserCase("users: of one instance", machine=77),
    UserCase("users: common name in one instance", by="userName", value="meyer", machine=77),
    UserCase("users, small domain: common name", by="userName", value="Becker", small=True),
    NameCase("instances: first page, 10 entries"),
    NameCase("instances: first page, 100 entries", size=100),
    NameCase("instances: page at offset 50,000", page=5_001),
    NameCase("instances: one hit, a full name", filter="jump-hamburg-012349"),
    NameCase("instances: part of an address", filter="10.0.48."),
    NameCase("instances: common city", filter="Berlin"),
    NameCase("instances: 1 letter, in all", filter="e"),
    NameCase("instances: 3 letters, in all", filter="10."),
    NameCase("instances: the domain of all", filter=".example.org"),
    NameCase("instances: no hit", filter="zzyzx"),
    NameCase("groups: first page, 10 entries", of_groups=True),
    NameCase("groups: part of a name", filter="oup-001", of_groups=True),
)


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


async def _fill(data: Path, large: Tenant, small: Tenant) -> str:
    """Add all rows and return a line with the time that this took."""
    started = time.monotonic()
    async with open_store(data) as store:
        for tenant, part in ((large, 1), (small, SMALLER)):
            await in_turns(store, INSTANCES // part, partial(add_instance, tenant.domain_id), "instances")
            first = await store.read(partial(first_instance, tenant.domain_id))
            add = partial(add_user, tenant.domain_id, first, INSTANCES // part)
            await in_turns(store, USERS // part, add, "users")
            await in_turns(store, GROUPS // part, partial(add_group, tenant.domain_id, first), "groups", TURN // 100)
    size = (data / "sallyport.db").stat().st_size / (1 << 20)
    everything = USERS + INSTANCES + GROUPS + (USERS + INSTANCES + GROUPS) // SMALLER
    return f"{everything:,} users, instances and groups, {size:,.0f} MiB, in {time.monotonic() - started:.0f} s."


async def in_turns(store: SqliteStore, count: int, add: Callable[[Tx, int], None], kind: str, turn: int = TURN) -> None:
    for done in range(0, count, turn):
        await store.write(lambda tx, done=done: [add(tx, number) for number in range(done, min(done + turn, count))])
        if done % 100_000 == 0:
            tell(f"{done:,} of {count:,} {kind}")


def add_instance(domain_id: int, tx: Tx, number: int) -> None:
    name = f"{ROLES[number % 5]}-{CITIES[number % 6 + number // 5 % 2 - 1]}-{number:06}"
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    new = Instance(name, os_id=1 + number % 3, private_ip=address, host_name=f"{name}.example.org")
    instances.add(tx, domain_id, new, START_US)


def first_instance(domain_id: int, tx: Tx) -> int:
    return tx.value(int, "select min(id) from endpoint_instances where domain_id = :d", d=domain_id) or 0


def add_user(domain_id: int, first: int, machines: int, tx: Tx, number: int) -> None:
    name = f"{FIRST[number % 10]}.{LAST[number // 10 % 11]}-{number:06}@example.org"
    said = UserChange(name, "Admin" if number % 100_000 == 77 else None)
    user_id = users.add(tx, _VAULT, domain_id, said, START_US)
    if number % 10 == 3:
        membership.change(tx, USERS_OF_INSTANCE, Action.ADD, [first + number // 10 % machines], [user_id])


def add_group(domain_id: int, first: int, tx: Tx, number: int) -> None:
    group_id = groups.add(tx, domain_id, Group(f"group-{number:04}"), START_US)
    sql = "select min(id) from endpoint_users where domain_id = :d"
    user = (tx.value(int, sql, d=domain_id) or 0) + 100 * number % 100_000
    membership.change(tx, USERS_OF_GROUP, Action.ADD, [group_id], range(user, user + 100))
    membership.change(tx, GROUPS_OF_INSTANCE, Action.ADD, range(first + number, first + number + 10), [group_id])
