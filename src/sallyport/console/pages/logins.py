"""The live log: logins as they happen, and one login with its steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, Literal

from starlette.responses import Response

from sallyport.areas.domains.domain import Domain
from sallyport.areas.events.event import DomainEvent, EventRow
from sallyport.areas.login.advice import ADVICE, Step
from sallyport.areas.login.login import Reason
from sallyport.areas.signin.person import Person
from sallyport.base.answer import answer
from sallyport.base.errors import NotFound
from sallyport.base.mac import as_mac, mac_key, station_key
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.live import KEPT
from sallyport.console.pages import senders
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.reading import of
from sallyport.console.pages.rules import ACTIONS, READ, SETS, rules_read
from sallyport.console.table import LOGINS as LOG
from sallyport.console.table import SIZE, Filter, Table, is_export, recent, since, wanted
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context
from sallyport.web.scope import READERS

pages = Pages()
MAX_DOMAINS: Final = 20
"""Maximum number of domains whose logins one page merges."""
EXPORTED: Final = 1000
BESIDE: Final = 8
COLUMNS: Final = row_columns(
    EventRow,
    *("time", "user", "appliedDecision", "reason", "wouldHaveBeen", "device_name", "station", "domain"),
    links={
        "time": lambda row: f"/logins/{row['eventId']}?domain={row['domainId']}",
        "user": lambda row: person_url(int(str(row["domainId"])), str(row["user"])),
    },
)
OUTCOMES: Final = (("accept", "accept"), ("reject", "reject"), ("challenge", "challenge"))
FILTERS: Final = (
    Filter("search", "Search"),
    Filter("user", "User"),
    Filter("device", "Device"),
    Filter("station", "Station"),
    Filter("appliedDecision", "Answer", OUTCOMES),
    Filter("reason", "Reason", [(each.value, each.value) for each in Reason if each is not Reason.NONE]),
)
NOT_INDEXED: Final = tuple(each.name for each in FILTERS)
EMPTY: Final = (
    "No login yet. Register a RADIUS client, and point a device to this service. Senders without an answer are on a "
    "page of their own."
)


@pages.show("/logins", "Live log", roles=READERS, template="logins.html", menu="Logins")
async def logins(visit: Visit) -> Context:
    """Show the newest logins of one domain, or of all domains of the tenant."""
    domains = _domains(visit)
    table = await _table(visit, domains)
    is_first = not visit.query.get("cursor")
    live = address("/logins/live", visit.query.multi_items()) if is_first and domains else ""
    return {"table": table, "domains": visit.domains(), "chosen": visit.query.get("domain", ""), "live": live}


@pages.show("/logins/live", "New logins", roles=READERS, is_quiet=True)
async def live(visit: Visit) -> Response:
    """Send the new logins that match the filters, as rows of the list. If many arrive at once, send the newest."""
    asked = {name: fold(str(text)) for name, text in wanted(visit, FILTERS).items()}
    names = {domain.id: domain.name for domain in _domains(visit)}
    nodes, assets = await visit.services.events.nodes(), visit.services.assets

    def rendered(own: Sequence[DomainEvent]) -> bytes:
        matching = [each for each in own if all(_COMPARED[name](each, text) for name, text in asked.items())]
        if not matching:
            return b""
        newest = matching[-SIZE:]
        shown = [
            as_listed(_row(answer(each, domain=names[each.domain_id], nodes=nodes), each.domain_id)) for each in newest
        ]
        variables = {"table": Table(visit, COLUMNS, shown, None), "left_out": len(matching) - len(newest)}
        return assets.rendered("logins_new.html", variables)

    async def rows(new: Sequence[DomainEvent]) -> bytes:
        own = [each for each in new if each.domain_id in names]
        return await assets.in_turn(visit.caller.tenant_id, partial(rendered, own)) if own else b""

    def still(person: Person) -> bool:
        visible = visit.services.domains.of_tenant(person.caller.tenant_id)
        return bool(person.roles & READERS) and set(names) <= {domain.id for domain in visible}

    return await visit.stream(rows, still, tuple(names.items()))


@pages.show("/logins/{event}", "Login", roles=READERS, template="login.html")
async def login(visit: Visit) -> Context:
    """Show one login: its steps, the reason in words, and the newest logins of the same user and station."""
    domain = visit.domain()
    row = await _login(visit, domain)
    reason = _reason(row)
    beside = [
        (title, address("/logins", [(name, str(row[key])), ("domain", str(domain.id))]), list(map(as_listed, same)))
        for title, name, key in (("this user", "user", "user"), ("this station", "station", "station"))
        if row[key]
        for same in [await newest(visit, domain, **{name: row[key]}, pageSize=BESIDE)]
    ]
    return {
        "title": f"Login of {row['user'] or 'an unnamed user'}",
        "login": row,
        "role_sets": SETS,
        "person_url": person_url(domain.id, str(row["user"])) if row["user"] else "",
        "domain": domain,
        "steps": steps(row, domain),
        "advice": ADVICE.get(reason),
        "reason": reason,
        "beside": beside,
    }


@pages.show("/logins/{event}/now", "The same login now", roles=READERS, template="login_now.html")
async def now(visit: Visit) -> Context:
    """Show how the same login would be decided now if the password were right: rules, factors, mode. This test may ask
    the directory and the provider, so it has a page of its own."""
    domain = visit.domain()
    row = await _login(visit, domain)
    asked: Row = {"user": row["user"], "client": row["ip_address"], "station": row["station"]}
    if row["client_ip"] != row["ip_address"]:
        asked["nas"] = row["client_ip"]
    asked |= {"ssid": row["ssid"], "port": row["port"]}
    tested = await visit.call("/ad/TestLoginRules", asked, domain=domain.id)
    return {
        "login": row,
        "sets": SETS,
        "domain": domain,
        "tested": tested,
        "action": dict(ACTIONS)[str(tested["action"])],
        "rules": rules_read(tested),
        "rule_columns": READ,
        "advice": ADVICE.get(_reason(tested)),
    }


async def _login(visit: Visit, domain: Domain) -> Row:
    """Return the login that the path names. Raises NotFound."""
    number = visit.at["event"]
    is_number = number.isdecimal() and number.isascii() and 0 < int(number) < 2**63
    found = await newest(visit, domain, eventId=int(number)) if is_number else []
    if not found:
        raise NotFound("login not found")
    return found[0]


# --- the list -----------------------------------------------------------------------------------------------------


def _domains(visit: Visit) -> list[Domain]:
    """Return the domain of the address, or all domains of the tenant. Raises NotFound."""
    if visit.query.get("domain"):
        return [visit.domain()]
    return visit.domains()[:MAX_DOMAINS]


async def _table(visit: Visit, domains: Sequence[Domain]) -> Table:
    asked: dict[str, JSON] = {**wanted(visit, FILTERS), "withTotal": False}
    size = EXPORTED if is_export(visit) else SIZE
    older, found, searched_since = "", list[Row](), ""
    for domain in domains:
        place = {"cursor": visit.query.get("cursor", "")} if len(domains) == 1 else {}
        newer = await recent(visit, LOG, "events", "time", NOT_INDEXED, domain=domain.id)
        searched_since = max(searched_since, str(newer.get("from", "")))
        answer = await visit.call(LOG, {**asked, **place, **newer, "pageSize": size}, domain=domain.id)
        found += [as_listed(_row(each, domain.id)) for each in entries(answer.get("events"))]
        older = str(answer.get("cursor", "")) if len(domains) == 1 else ""
    found.sort(key=lambda row: (str(row["time"]), int(str(row["eventId"]))), reverse=True)
    next_url = visit.url(cursor=older) if older and not is_export(visit) else ""
    table = Table(
        visit, COLUMNS, found[:size], None, filters=FILTERS, empty=EMPTY, next_url=next_url,
        searched_since=searched_since,
    )  # fmt: skip
    senders.tell_elsewhere(table)
    return table


async def newest(visit: Visit, domain: Domain, **fields: JSON) -> list[Row]:
    """Return logins of a domain, the newest first. fields: the fields of GetAuthLog. Unless `eventId` is given, only
    the newest SEARCHED logins of the domain are searched. Raises Refused, StoreError."""
    asked = fields if "eventId" in fields else {**fields, **await newest_since(visit, domain)}
    answer = await visit.call(LOG, {**asked, "withTotal": False}, domain=domain.id)
    return [_row(each, domain.id) for each in entries(answer.get("events"))]


def _row(event: Row, domain_id: int) -> Row:
    return {**event, "domainId": domain_id}


def as_listed(event: Row) -> Row:
    """Return a login as lists show it. The reason belongs to the decision. If monitor mode has sent another answer, the
    reason is with the answer of enforce mode, such as `reject: blocked by rule`."""
    would, reason = event["wouldHaveBeen"], event["reason"]
    if would in (None, "", event["appliedDecision"]) or not reason:
        return event
    return {**event, "reason": "", "wouldHaveBeen": f"{would}: {reason}"}


async def newest_since(visit: Visit, domain: Domain) -> dict[str, JSON]:
    """Return the field `from` of GetAuthLog that selects the newest SEARCHED logins of a domain. Raises StoreError."""
    return await since(visit, LOG, "events", "time", domain=domain.id)


_folded = lru_cache(8 * KEPT)(fold)  # pages with different filters compare the same texts of the new logins
_Compare = Callable[[DomainEvent, str], bool]


def _equal(name: str, event: DomainEvent, text: str) -> bool:
    return _folded(getattr(event, name)) == text


def _is_station(event: DomainEvent, text: str) -> bool:
    return station_key(event.station) == station_key(text)


def _contains(event: DomainEvent, text: str) -> bool:
    texts = (event.user_name, event.device_name, event.station, event.ip_address, event.client_ip)
    return any(text in _folded(each) for each in texts) or (bool(mac_key(text)) and _is_station(event, text))


_COMPARED: Final[Mapping[str, _Compare]] = {
    "search": _contains,
    "user": partial(_equal, "user_name"),
    "device": partial(_equal, "device_name"),
    "station": _is_station,
    "appliedDecision": partial(_equal, "applied_decision"),
    "reason": partial(_equal, "reason"),
}
"""The comparison of each filter with a new login, which is the same as in the operation. The text is case-folded."""


# --- one login ----------------------------------------------------------------------------------------------------

State = Literal["passed", "ended here", "would end here", "not reached", ""]


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step of a login as the page shows it. path: the address of a page about the step, or empty. link: the text of
    the link to this page."""

    name: str
    state: State
    text: str
    path: str = ""
    link: str = ""


def _reason(row: Row) -> Reason:
    try:
        return Reason(str(row["reason"]))
    except ValueError:  # of a newer node
        return Reason.NONE


def steps(row: Row, domain: Domain) -> list[ShownStep]:
    """Return the steps of a login. row: an entry of GetAuthLog. domain: the login's domain, with its current mode."""
    advice = ADVICE.get(_reason(row))
    order = list(Step)
    end = len(order) if advice is None else order.index(advice.step)
    first, _, second = str(row["factor"]).partition("+")
    texts = {
        Step.DOMAIN: f"the login belongs to the domain {row['domain']}",
        Step.FIRST: f"checked by {first}" if first else "no first factor was asked",
        Step.RULE: _rule(row),
        Step.SECOND: f"checked by {second}" if second else "not required",
    }
    waits = {Step.FIRST: _waited(row["firstFactorMs"]), Step.SECOND: _waited(row["secondFactorMs"])}
    rule = {"path": of(f"/rules/{row['ruleId']}/edit", domain), "link": str(row["rule"])} if row["ruleId"] else {}
    device, method = row["device_name"] or "a device without a name", row["method"] or "no method"
    sent = f"{device} ({row['client_ip']}) sent it with {method}"
    station = f", for station {as_mac(str(row['station']))}" if row["station"] else ""
    through = f", through {row['ip_address']}" if row["ip_address"] != row["client_ip"] else ""
    shown = [ShownStep("request", "passed", sent + station + through)]
    for number, step in enumerate(order):
        more = rule if step is Step.RULE and number <= end else {}
        if number == end and advice is not None:
            shown.append(ShownStep(step, _state(row), f"{row['reason']}{waits.get(step, '')}", **more))
        elif number < end:
            shown.append(ShownStep(step, "passed", f"{texts[step]}{waits.get(step, '')}", **more))
        else:
            shown.append(ShownStep(step, "not reached", ""))
    node = f", decided by {row['node']}" if row["node"] else ""
    answer = f"{row['appliedDecision']} after {row['latencyMs']} ms{node}"
    return [*shown, ShownStep("mode", "", _mode(row)), ShownStep("answer", "", answer)]


def _rule(row: Row) -> str:
    """Return the text of the step of the login rules."""
    if row["ruleId"] is None:
        return "no rule blocks the login; an earlier version has not recorded the rule"
    return "decided by the rule" if row["ruleId"] else "no rule matched"


def _waited(milliseconds: JSON) -> str:
    """Return the time of a step for which the login waited, in parentheses. Return an empty text if the login did not
    wait."""
    if not isinstance(milliseconds, int | float):
        return ""
    return f" ({milliseconds / 1000:.1f} s)" if milliseconds >= 1000 else f" ({milliseconds:.1f} ms)"


def _state(row: Row) -> State:
    if row["decision"] == "accept":
        return "passed"
    return "would end here" if row["appliedDecision"] == "accept" else "ended here"


def _mode(row: Row) -> str:
    if not row["wouldHaveBeen"]:
        return "enforce: the decision was sent"
    if row["wouldHaveBeen"] == row["appliedDecision"]:
        return f"monitor: enforce mode would have answered {row['wouldHaveBeen']} too"
    return f"monitor: enforce mode would have answered {row['wouldHaveBeen']}"
