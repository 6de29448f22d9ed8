"""SQL for the impact preview. The store counts recorded logins in groups that login rules cannot distinguish."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from sallyport.areas.devices import repo as inventory
from sallyport.areas.devices.rows import DeviceRow, Learned
from sallyport.areas.login.login import Reason
from sallyport.areas.preview.periods import Span
from sallyport.base.tags import NO_TAGS, Tags, of_store
from sallyport.radius.password import Method
from sallyport.store.model import Tx

PASSED = (
    Reason.NONE, Reason.BLOCKED, Reason.ASKED, Reason.ENROLMENT_UNKNOWN, Reason.DENIED, Reason.WRONG_CODE,
    Reason.ASKED_AGAIN, Reason.NOT_ME, Reason.UNBOUND_LOGIN, Reason.CODE_NOT_RETURNED, Reason.NOT_STRONG_ENOUGH,
    Reason.NOT_ENROLLED, Reason.TAKES_NO_CODE, Reason.NOT_ANSWERED, Reason.GIVES_UP, Reason.TOO_MANY_PROMPTS,
    Reason.TOO_MANY_CODES, Reason.NO_PROVIDER, Reason.UNREACHABLE, Reason.CIRCUIT_OPEN, Reason.UNREADABLE,
    Reason.STOPPED, Reason.RATE_LIMITED, Reason.TOO_MANY_SESSIONS, Reason.NOT_CONFIRMED,
)  # fmt: skip
"""The reasons of events that record a login with a passed first factor."""
_FACTS = {
    "station": ("station", "''"),
    "service_type": ("service_type", "null"),
    "machine": ("coalesce(machine, 0)", "0"),
    "method": ("method", "min(method)"),
    "ssid": ("ssid", "''"),
    "port": ("port", "''"),
    "realm": ("realm", "null"),
    "claimed": ("claimed", "null"),
    "facts": ("facts", "null"),
}
"""The columns of an event that only some rules compare: the SQL of each, and of its value in a group that does not
distinguish it."""
_REASONS = ", ".join(f":r{number}" for number in range(len(PASSED)))


@dataclass(frozen=True, slots=True)
class Group:
    """A group of recorded logins. Neither login rules nor the enrolment can distinguish the logins of a group.

    period: the number of the period of the logins. exists: whether the domain now has an endpoint user of this name.
    machine: whether the certificate belongs to a computer although the name does not look like one. method: the
    authentication method. If the method does not matter, the group may have several methods, and this is one of them.
    ssid, port, realm, claimed, facts: the columns of the events, or empty values if no rule compares these facts. realm
    and claimed are None if an earlier release has recorded the logins. logins: the number of logins. last_at: the time
    of the last login, in microseconds.
    """

    user_name: str
    device_id: int
    ip_address: str
    client_ip: str
    device_name: str
    station: str
    service_type: int | None
    machine: int
    method: str
    ssid: str
    port: str
    realm: str | None
    claimed: int | None
    facts: str | None
    period: int
    logins: int
    last_at: int
    exists: int


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """The current state of a device in the inventory. learned: what the service has learned from its logins. own_tags:
    its tags, without those that it takes over from its RADIUS client. is_named: whether it sends a NAS-Identifier."""

    id: int
    device_name: str
    product: str
    nas_product: str
    medium: str
    learned: Learned
    own_tags: Tags = NO_TAGS
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Scopes:
    """The facts that distinguish recorded logins, in addition to user, device and period.

    columns: the names of the columns in `_FACTS`. directory: whether a rule compares the user's names, groups or OUs.
    """

    columns: frozenset[str]
    directory: bool = False


def first_at(tx: Tx, domain_id: int) -> int:
    """Return the time of a domain's first event in microseconds, or 0 if the domain has no events."""
    return tx.value(int, "select min(at) from events where domain_id = :d", d=domain_id) or 0


def slice_begin(tx: Tx, domain_id: int, since: int, until: int, number: int) -> int:
    """Return the start of a slice of time that ends at `until` (exclusive) and has about `number` events. It is `since`
    if there are fewer events from `since` on. Events of the same time are in the same slice. Times in microseconds."""
    sql = (
        "select at from events where domain_id = :d and at >= :since and at < :until "
        "order by at desc limit 1 offset :before"
    )
    return tx.value(int, sql, d=domain_id, since=since, until=until, before=number - 1) or since


def groups(tx: Tx, domain_id: int, spans: Sequence[Span], scopes: Scopes) -> list[Group]:
    """Return the logins of a domain in these spans, in groups. Only logins that have passed their first factor are
    included."""
    values = ", ".join(f"({span.period}, {span.since}, {span.until})" for span in spans)
    shown = {name: known if name in scopes.columns else other for name, (known, other) in _FACTS.items()}
    by = ", ".join(["user_name", "device_id", *(shown[name] for name in _FACTS if name in scopes.columns), "period"])
    return tx.all(
        Group,
        # The spans come first, so that each is one range scan of the index; SQLite keeps the order of a cross join.
        f"with spans (period, since, until) as (values {values}), found as (select user_name, device_id, "
        f"min(ip_address) as ip_address, min(client_ip) as client_ip, min(device_name) as device_name, "
        f"{', '.join(f'{sql} as {name}' for name, sql in shown.items())}, period, count(*) as logins, "
        f"max(at) as last_at "
        f"from spans cross join events where domain_id = :d and at >= since and at < until and reason in ({_REASONS}) "
        f"and method <> '{Method.MAB}' "  # no person is present for a second factor
        f"group by {by}) "
        "select found.*, exists (select 1 from endpoint_users where domain_id = :d and name_key = "
        'fold(user_name)) as "exists" from found',
        d=domain_id,
        **{f"r{number}": reason.value for number, reason in enumerate(PASSED)},
    )


def devices(tx: Tx, domain_id: int, of: Sequence[Group], known: Container[int]) -> dict[int, KnownDevice | None]:
    """Return the devices of the groups, by device id. Leave out the devices that are in `known`. If a device no longer
    exists, its value is None.

    If a device was deleted and has registered again, it has a new id. Such a device is found by its addresses and its
    name.
    """
    new = {group.device_id: group for group in of if group.device_id not in known}
    found: dict[int, KnownDevice | None] = {row.id: _known(row) for row in inventory.several(tx, domain_id, list(new))}
    for device_id in new.keys() - found.keys():
        group = new[device_id]
        row = inventory.find_again(tx, domain_id, group.ip_address, group.client_ip, group.device_name)
        found[device_id] = None if row is None else _known(row)
    return found


def _known(row: DeviceRow) -> KnownDevice:
    return KnownDevice(
        id=row.id,
        device_name=row.device_name,
        product=row.device_type,
        nas_product=row.nas_device_type,
        medium=row.nas_port_type,
        own_tags=of_store(row.own_tags),
        is_named=bool(row.nas_identifier),
        learned=row,
    )
