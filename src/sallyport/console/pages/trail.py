"""The audit trail of the tenant. Installation administrators can also see the audit trail of the whole installation."""

import json
import re
from dataclasses import replace
from functools import partial
from typing import Final

from sallyport.base.errors import Invalid
from sallyport.base.fair import in_parts
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column
from sallyport.console.table import SEARCHED, Filter, Table, has_slow_filter, listed, recent, wanted
from sallyport.console.visit import FormProblem, Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context
from sallyport.web.scope import INSTALLATIONS, READERS

pages = Pages()
LIST: Final = "/api/v1/audit/list"
MAX_LENGTH: Final = 200
EMPTY_VALUES: Final[tuple[JSON, ...]] = ("", [], {}, None)
REMOVALS: Final = (".delete", ".remove")
"""The ends of the actions that remove an object."""
FRACTION: Final = re.compile(r"(?<=T\d\d:\d\d:\d\d)\.\d+(?=Z$)")
"""The microseconds of a time."""
PAGE: Final = 100
COLUMNS: Final = (
    Column("time", "Time", "time"),
    Column("actor", "Who"),
    Column("actorKind", "Kind of actor", is_chosen=False),
    Column("action", "Action", "code"),
    Column("target", "What", "long"),
    Column("domain", "Domain"),
    Column("changed", "Changes", "changes"),
    Column("tokenId", "Token id", "number", is_chosen=False),
    Column("requestId", "Request", "code", is_chosen=False),
    Column("auditId", "Id", "number", is_chosen=False),
)
WHOLE: Final = (*COLUMNS[:1], Column("org", "Org", "number"), Column("tenant", "Tenant", "number"), *COLUMNS[1:])
FILTERS: Final = (
    Filter("search", "Text"),
    Filter("actor", "Who"),
    Filter("action", "Action"),
    Filter("from", "From, such as 2026-11-23"),
    Filter("to", "Until"),
)
NOT_INDEXED: Final = ("search", "actor", "action")
EMPTY: Final = "No change yet. Each change by a person, a token, an agent or the command line will be listed here."


@pages.show("/audit", "Audit trail", roles=READERS, template="audit.html", menu="Administration")
async def trail(visit: Visit) -> Context:
    """List the changes in the tenant, the newest first."""
    names = {domain.id: domain.name for domain in visit.domains()}
    filters = (*FILTERS, Filter("domainId", "Domain", [(str(each), name) for each, name in names.items()]))
    body = wanted(visit, filters)
    try:
        newer = await recent(visit, LIST, "entries", "time", NOT_INDEXED)
        table = await listed(
            visit, COLUMNS, LIST, "entries", {**body, **newer}, filters=filters, empty=EMPTY, most=1000
        )
    except Invalid as error:
        return {"table": Table(visit, COLUMNS, [], 0, filters=filters), "problem": FormProblem.of(error)}
    table.rows = await in_parts(partial(_row, names=names), table.rows)
    table.searched_since = str(newer.get("from", ""))
    return {"table": table}


@pages.show(
    "/installation/audit", "Audit trail of all tenants", roles=INSTALLATIONS, template="audit.html", menu="Installation"
)
async def whole(visit: Visit) -> Context:
    """List the changes of the whole installation, the newest first. The link to the next page contains the time and the
    id of the last entry on this page."""
    asked, after = wanted(visit, FILTERS), _after(visit.query.get("after", ""))
    newer = await _recent(visit)
    names = {domain.id: domain.name for domain in visit.services.domains.table.by_id.values()}
    try:
        answer = await visit.command("audit.list", **{**asked, **newer}, after=after, limit=PAGE)
    except Invalid as error:
        return {"table": Table(visit, WHOLE, [], 0, filters=FILTERS), "problem": FormProblem.of(error)}
    found = entries(answer["entries"]) if isinstance(answer, dict) else []
    after = answer["after"] if isinstance(answer, dict) else None
    following = visit.url(after="-".join(map(str, after))) if isinstance(after, list) and len(found) == PAGE else ""
    rows = await in_parts(partial(_row, names=names), found)
    table = Table(visit, WHOLE, rows, None, filters=FILTERS, empty=EMPTY)
    return {"table": replace(table, next_url=following, searched_since=str(newer.get("from", "")))}


async def _recent(visit: Visit) -> dict[str, JSON]:
    """Return the argument `from` for the audit trail of all tenants. See `table.recent`."""
    if not has_slow_filter(visit, NOT_INDEXED):
        return {}
    answer = await visit.command("audit.list", offset=SEARCHED, limit=1)
    found = entries(answer["entries"]) if isinstance(answer, dict) else []
    return {"from": found[0]["time"]} if found else {}


def _after(text: str) -> JSON:
    at, _, number = text.partition("-")
    known = at.isdecimal() and number.isdecimal() and len(text) < 39 and text.isascii()
    return [int(at), int(number)] if known else None


def _row(entry: Row, names: dict[int, str]) -> Row:
    number = entry["domainId"]
    name = names.get(number, f"removed ({number})") if isinstance(number, int) else None
    is_removal = str(entry["action"]).endswith(REMOVALS)
    return {**entry, "domain": name, "changed": _changes(entry["changes"], is_removal=is_removal)}


def _changes(changes: JSON, *, is_removal: bool) -> list[JSON]:
    """Return each changed field with the values before and after the change, without fields that were and are empty. An
    added object lists what it has, and a removed one what it had."""
    if not isinstance(changes, dict):
        return []
    found = list[JSON]()
    for field, value in changes.items():
        before, after = value if isinstance(value, list) and len(value) == 2 else (None, value)
        if before in EMPTY_VALUES and after in EMPTY_VALUES:
            continue
        only = after if before is None else before if is_removal and after is None else None
        found.append(f"{field}: {_value(before)} → {_value(after)}" if only is None else f"{field}: {_value(only)}")
    return found


def _value(value: JSON) -> str:
    if isinstance(value, list) and not any(isinstance(each, dict | list) for each in value):
        text = ", ".join(map(str, value))
    else:
        text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = FRACTION.sub("", text[: 2 * MAX_LENGTH])
    return f"{text[:MAX_LENGTH]}…" if len(text) > MAX_LENGTH else text or "empty"
