"""Shadow mode: how the decisions of another RADIUS server compare with those of this service, the logins behind each
number, and what changes for one NAS that is switched over."""

from collections.abc import Callable, Sequence
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.shadow.report import MAX_CASES
from sallyport.areas.shadow.shadow_login import ShadowCase
from sallyport.base.text import counted, fold
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.reading import of, rights
from sallyport.console.table import Filter, Table, complete
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
COMPARE: Final = "/ad/CompareShadowLogins"
PAGE: Final = "/shadow"
NAS: Final = "/shadow/nas"
RESULTS: Final = ("laxer", "stricter", "reply", "unknown", "same")
OF_CAUSE: Final = ("result", "reason", "rule", "oldReason", "oldPolicy")
AGAIN: Final = "again"
"""The parameter that asks for new decisions."""
WITHOUT: Final = "without"
"""The parameter with the names of the fields that are empty in the listed logins."""
SHOWN: Final = 50
"""Number of users and of NAS that the page lists."""
FILTERS: Final = (Filter("result", "Result", [(each, each) for each in RESULTS]),)
KEPT: Final = ("domain", "device", "user", "reason", "rule", "oldReason", "oldPolicy", WITHOUT)
EMPTY: Final = "No login differs."


@pages.show(PAGE, "Shadow mode", roles=READERS, template="shadow.html", menu="Sign-in policy", is_slow=True)
async def shadow(visit: Visit) -> Context:
    """Show how the recorded logins of another server compare, by cause, user and NAS."""
    domain = visit.domain()
    found = await _compared(visit, domain)
    devices = [
        Column("name", "NAS", link=lambda row: _at(NAS, domain, device=row["name"])),
        *_counts(PAGE, domain, "device"),
    ]
    return {
        "domain": domain, "found": found, "chosen": _chosen(visit), "table": _logins(visit, domain, found),
        "devices": _differing(found["devices"]), "device_columns": devices, **_parts(visit, PAGE, domain, found),
    }  # fmt: skip


@pages.show(NAS, "Switch one NAS over", roles=READERS, template="shadow_nas.html", is_slow=True)
async def nas(visit: Visit) -> Context:
    """Show what changes for one NAS if it asks this service instead of the other server."""
    domain, device = visit.domain(), visit.query.get("device", "")
    found = await _compared(visit, domain)
    known = [Column("name", "NAS", link=lambda row: _at(NAS, domain, device=row["name"])), *_counts(PAGE, domain, "")]
    return {
        "title": f"Switch {device} over" if device else "Switch one NAS over", "domain": domain, "device": device,
        "found": found, "client": await _client(visit, device), "table": _logins(visit, domain, found),
        "devices": [*map(_without_zeros, entries(found["devices"]))], "device_columns": known,
        **_parts(visit, NAS, domain, found),
    }  # fmt: skip


@pages.show("/shadow/clear", "Delete recorded logins", roles=OPERATORS, template="shadow_clear.html", is_slow=True)
async def confirm(visit: Visit) -> Context:
    """Show how many recorded logins would be deleted."""
    domain = visit.domain()
    return {"domain": domain, "found": await visit.call(COMPARE, {"cases": 0}, domain=domain.id)}


@pages.submit("/shadow/clear", roles=OPERATORS, is_slow=True)
async def clear(visit: Visit) -> Redirect:
    """Delete all recorded logins of the domain."""
    domain = visit.domain()
    done = await visit.call("/ad/DeleteShadowLogins", domain=domain.id)
    return Redirect(of(PAGE, domain), f"{counted(done['deleted'], 'recorded login')} of {domain.name} deleted.")


async def _compared(visit: Visit, domain: Domain) -> Row:
    """Return the last report for the parameters of the address, or a new one."""
    body: Row = {name: visit.query[name] for name in ("device", "user", *OF_CAUSE) if visit.query.get(name)}
    body |= {name: "" for name in visit.query.get(WITHOUT, "").split() if name in OF_CAUSE[1:]}
    kept = not visit.query.get(AGAIN)
    return await visit.call(COMPARE, {**body, "cases": MAX_CASES, "kept": kept}, domain=domain.id)


def _parts(visit: Visit, path: str, domain: Domain, found: Row) -> dict[str, object]:
    """Return the variables of both pages. path: the page to which the numbers link."""
    kept: Row = {"device": visit.query["device"]} if path == NAS and visit.query.get("device") else {}
    causes = (
        Column("result", "Result", "outcome"),
        Column("reason", "Reason here"),
        Column("rule", "Rule"),
        Column("oldReason", "Reason there"),
        Column("oldPolicy", "Policy there"),
        Column("logins", "Logins", "number", link=lambda row: _at(path, domain, **kept, **_cause(row))),
        Column("users", "Users", "number"),
        Column("devices", "NAS", "number"),
        Column("lastSeen", "Last login", "age"),
    )
    users = (
        Column("name", "User", link=lambda row: person_url(domain.id, str(row["name"]))),
        *_counts(path, domain, "user", kept),
    )
    return {
        "causes": causes,
        "groups": entries(found["groups"]),
        "user_columns": users,
        "users": _differing(found["users"]),
        "shown": SHOWN,
        "again": address(
            path, [*((name, value) for name, value in visit.query.items() if name != AGAIN), (AGAIN, "1")]
        ),
        "numbers": [(each, _at(path, domain, **kept, result=each)) for each in RESULTS],
        **rights(visit),
    }


def _logins(visit: Visit, domain: Domain, found: Row) -> Table:
    """Return the list of the logins behind a number."""
    columns = row_columns(
        ShadowCase,
        *(
            "at",
            "user",
            Column("station", "Station", "mac"),
            "device",
            Column("result", "Result", "outcome"),
            "decision",
            "reason",
            "rule",
        ),
        *("oldReason", "oldPolicy", "place"),
        links={"user": lambda row: person_url(domain.id, str(row["user"]))},
    )
    rows = entries(found["cases"])
    table = complete(visit, columns, rows, filters=FILTERS, empty=EMPTY)
    table.kept = KEPT
    if len(rows) == MAX_CASES:
        table.searched = f"the last {MAX_CASES:,} recorded logins that match"
    return table


def _counts(path: str, domain: Domain, name: str, kept: Row | None = None) -> tuple[Column, ...]:
    """Return the columns with the numbers of a user or a NAS. name: the parameter that selects its logins; empty for
    numbers without links."""

    def link(result: str) -> Callable[[Row], str] | None:
        return (lambda row: _at(path, domain, **{**(kept or {}), name: row["name"]}, result=result)) if name else None

    return tuple(Column(each, each.capitalize(), "number", link=link(each)) for each in RESULTS)


def _differing(rows: JSON) -> Sequence[Row]:
    """Return the first users or NAS with a login that differs."""
    differing = [row for row in entries(rows) if any(row[each] for each in RESULTS[:-1])]
    return [_without_zeros(row) for row in differing[:SHOWN]]


def _without_zeros(row: Row) -> Row:
    return {name: value or None for name, value in row.items()}


def _cause(row: Row) -> Row:
    """Return the parameters that select the logins of a cause."""
    empty = [name for name in OF_CAUSE if not row[name]]
    return {**{name: row[name] for name in OF_CAUSE if row[name]}, WITHOUT: " ".join(empty)}


def _chosen(visit: Visit) -> list[tuple[str, str]]:
    """Return the parameters that select the listed logins, as titles and values."""
    titles = {"user": "user", "device": "NAS", "reason": "reason", "rule": "rule", "oldReason": "reason there",
              "oldPolicy": "policy there"}  # fmt: skip
    return [(title, visit.query[name]) for name, title in titles.items() if visit.query.get(name)]


async def _client(visit: Visit, device: str) -> Row | None:
    """Return the RADIUS client with the address or the name of a NAS, if one is found."""
    if not device:
        return None
    listed = await visit.call("/network_device/ListClients", {"search": device, "pageSize": 100})
    return next(
        (each for each in entries(listed["clients"]) if fold(device) in (fold(str(each["name"])), each["address"])),
        None,
    )


def _at(path: str, domain: Domain, **parameters: JSON) -> str:
    return address(path, [("domain", str(domain.id)), *((name, str(value)) for name, value in parameters.items())])
