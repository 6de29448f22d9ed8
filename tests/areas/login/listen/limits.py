"""Logins and accounting of users whose login rule limits their parallel sessions."""

from sallyport.areas.domains.domain import Mode
from sallyport.areas.events.event import EventQuery, EventRow
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.sessions.report import Status
from tests.areas import Areas
from tests.areas.login.listen.conftest import Wire
from tests.areas.sessions.records import octets
from tests.packets import accounting, attributes, pap

NAS_NAME = b"ap-1"
INTERVAL_S = 300


def login(number: int, user: str = "ann", station: str = "", name: bytes = NAS_NAME) -> bytes:
    """Return a correct login. number: the identifier of the request; without a station, also the end of its MAC
    address."""
    station = station or f"02-00-00-00-00-{number:02x}"
    body = attributes(NAS_IDENTIFIER=name, CALLING_STATION_ID=station.encode())
    return pap(user, "hello", body, identifier=number)


async def record(
    wire: Wire, status: Status, number: int, user: str = "ann", name: bytes = NAS_NAME, **more: bytes
) -> None:
    """Account for the session of a login with the same number. more: further attributes."""
    values: dict[str, bytes | int | str] = {
        "USER_NAME": user, "NAS_IDENTIFIER": name, "CALLING_STATION_ID": f"02-00-00-00-00-{number:02x}",
        "EVENT_TIMESTAMP": wire.areas.clock() // 1_000_000, **more,
    }  # fmt: skip
    await wire.ask(accounting(octets(status, b"%d" % number, **values)), acct=True)


async def sends_interims(wire: Wire, name: bytes = NAS_NAME, address: bytes = b"") -> None:
    """Let the device have a session of another user with an interim update. address: its NAS-IP-Address."""
    more = {"NAS_IP_ADDRESS": address} if address else {}
    await record(wire, Status.START, 200, "bob", name, **more)
    wire.areas.clock.pass_by(INTERVAL_S)
    await record(wire, Status.INTERIM, 200, "bob", name, **more)


async def limit(
    areas: Areas, most: int, over_limit: str = "reject", mode: Mode = Mode.ENFORCE, **fields: object
) -> int:
    """Add a rule with a limit, set the mode of the domain, and return the id of the rule."""
    rule = {"name": "limited", "action": "allow", "users": ["ann"], "maxSessions": most, "overLimit": over_limit}
    rule_id = await areas.rules.add(areas.domain, RuleFields.model_validate({**rule, **fields}))
    await areas.domains.set_mode([areas.domain], mode)
    return rule_id


async def last_event(areas: Areas) -> EventRow:
    """Return the newest event."""
    rows, _ = await areas.events.page(EventQuery(areas.domain, limit=1))
    return rows[0]
