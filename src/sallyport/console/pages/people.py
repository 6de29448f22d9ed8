"""People: the users of a domain, and one person with everything that decides the person's logins."""

from typing import Final

from sallyport.areas.domains.domain import LOCAL, Domain
from sallyport.areas.events.event import EventRow
from sallyport.base.errors import NotFound, Refused
from sallyport.base.mac import as_mac
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.logins import as_listed, newest_since
from sallyport.console.pages.reading import named, rights
from sallyport.console.pages.rules import READ, rules_read
from sallyport.console.pages.sessions import session_columns
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
USERS: Final = "/api/v1/endpointUsers/listAllEpmUsers"
DIRECTORY: Final = "/ad/GetAllAdUsers"
LOCKOUTS: Final = "/ad/ListLockouts"
PAUSES: Final = "/ad/ListPromptPauses"
KINDS: Final = (("local", "local users"), ("directory", "people of directories"))
FILTERS: Final = (Filter("search", "Name"), Filter("kind", "Kind", KINDS))
PROMPT_COLUMNS: Final = (
    Column("kind", "Waits for"),
    Column("device", "Device"),
    Column("source", "Device address", "code"),
    Column("station", "Station", "mac"),
    Column("expiresAt", "Ends", "time"),
)
LOGINS: Final = 10
SESSIONS: Final = 50


@pages.show("/people", "People", roles=READERS, template="people.html", menu="People")
async def people(visit: Visit) -> Context:
    """List the local users of a domain, or the people of its directories."""
    domain = visit.domain()
    kind = visit.query.get("kind") or ("local" if domain.first_factor is LOCAL else "directory")
    search = visit.query.get("search", "")

    def link(row: Row) -> str:
        return person_url(domain.id, str(row["userName"]))

    if kind == "directory":
        columns: tuple[Column, ...] = (
            Column("userName", "User", link=link),
            Column("displayName", "Name"),
            Column("email", "Mail"),
            Column("status", "State"),
            Column("groups", "Groups"),
            Column("directoryName", "Directory"),
            Column("upn", "Principal name", is_chosen=False),
            Column("dn", "Distinguished name", "code", is_chosen=False),
        )
        empty = "No person yet. Import a directory; its people then appear here."
        body: dict[str, JSON] = {"search": search}
        path, rows = DIRECTORY, "users"
    else:
        columns = (
            Column("userName", "User", link=link),
            Column("userType", "Type"),
            Column("hasPassword", "Password", "flag"),
            Column("hasTotp", "Authenticator app", "flag"),
            Column("groups", "Groups"),
            Column("hostNames", "Instances"),
            Column("updated", "Changed", "time"),
            Column("source", "Source", is_chosen=False),
            Column("credType", "Credential", is_chosen=False),
            Column("did", "DID", "code", is_chosen=False),
            Column("created", "Added", "time", is_chosen=False),
        )
        empty = "No local user yet. The command sallyport user add adds one; an import of a directory adds many."
        body = {"filter": {"filterBy": "userName", "value": search}}
        path, rows = USERS, "epmUsers"
    table = await listed(visit, columns, path, rows, body, domain=domain.id, filters=FILTERS, empty=empty, most=1000)
    return {"domain": domain, "table": table, "typed": search.strip()}


@pages.show("/people/person", "Person", roles=READERS, template="person.html", is_slow=True)
async def person(visit: Visit) -> Context:
    """Show a person: factors, lock-out, sessions, groups, last logins, and the rule that decides now."""
    domain, user = person_in_address(visit)
    local = await named(visit, USERS, "epmUsers", _filter(user), ("userName",), user, domain=domain.id)
    entry = await named(visit, DIRECTORY, "users", {"search": user}, ("userName", "upn"), user, domain=domain.id)
    body: dict[str, JSON] = {"user": user, "withTotal": False, "pageSize": 100, **await newest_since(visit, domain)}
    logins = entries((await visit.call("/ad/GetAuthLog", body, domain=domain.id))["events"])
    sessions = await _live(visit, domain, user)
    codes = entries((await visit.call("/ad/ListBypassCodes", {"userName": user}, domain=domain.id))["bypassCodes"])
    asked: dict[str, JSON] = {name: visit.query.get(name, "") for name in ("client", "station")}
    tested, refused = None, ""
    try:
        tested = await visit.call("/ad/TestLoginRules", {"user": user, **asked}, domain=domain.id)
    except Refused as error:  # a client of the form that does not exist, or a name that is too long for the test
        refused = str(error)
    return {
        "title": f"Person {user}",
        "domain": domain,
        "user": user,
        "local": local,
        "entry": entry,
        "lockout": await _lockout(visit, domain, user),
        "pause": await named(visit, PAUSES, "pauses", {"search": user}, ("userName",), user, domain=domain.id),
        "valid_codes": sum(row["state"] == "valid" for row in codes),
        "logins": [as_listed(row) for row in logins if fold(str(row["user"])) == fold(user)][:LOGINS],
        "login_columns": login_columns(domain),
        "sessions": sessions[:SESSIONS],
        "session_columns": session_columns(domain.id),
        "tested": tested,
        "refused": refused,
        "asked": asked,
        "rules": rules_read(tested) if tested else [],
        "rule_columns": READ,
        "prompt_columns": PROMPT_COLUMNS,
        "url": lambda action: person_page(domain, user, action),
        "log_url": address("/logins", [("domain", str(domain.id)), ("user", user)]),
        **rights(visit),
    }


@pages.show("/people/person/enrol", "Enrol an authenticator app", roles=OPERATORS, template="enrol.html")
async def enrolment(visit: Visit) -> Context:
    """Show the form that makes a seed of one-time codes for a user."""
    domain, user = person_in_address(visit)
    local = await named(visit, USERS, "epmUsers", _filter(user), ("userName",), user, domain=domain.id)
    has_totp = local is not None and bool(local["hasTotp"])
    return {"title": f"Enrol {user}", "user": user, "back": person_url(domain.id, user), "has_totp": has_totp}


@pages.submit("/people/person/enrol", roles=OPERATORS, template="enrolled.html")
async def enrol(visit: Visit) -> Context:
    """Make a seed, and show its QR code once."""
    domain, user = person_in_address(visit)
    made = await visit.call("/api/v1/endpointUsers/enrolTotp", {"userName": user}, domain=domain.id)
    return {
        "title": f"Enrol {user}",
        "user": user,
        "made": made,
        "back": person_url(domain.id, user),
        "confirm": person_page(domain, user, "code"),
    }


@pages.show("/people/person/code", "Confirm the authenticator app", roles=OPERATORS, template="enrol_code.html")
async def code(visit: Visit) -> Context:
    """Show the form for the first code."""
    domain, user = person_in_address(visit)
    return {"title": f"First code of {user}", "user": user, "back": person_url(domain.id, user)}


@pages.submit("/people/person/code", roles=OPERATORS)
async def confirm(visit: Visit) -> Redirect:
    """Make the new seed valid with its first code."""
    domain, user = person_in_address(visit)
    body: dict[str, JSON] = {"userName": user, "code": visit.fields.get("code", "")}
    await visit.call("/api/v1/endpointUsers/confirmTotp", body, domain=domain.id)
    return Redirect(person_url(domain.id, user), f"The authenticator app of {user} is valid from now on.")


@pages.show("/people/person/unlock", "Unlock a user", roles=OPERATORS, template="unlock.html")
async def locked(visit: Visit) -> Context:
    """Show the lock-out of a user."""
    domain, user = person_in_address(visit)
    found = await _lockout(visit, domain, user)
    return {"title": f"Unlock {user}", "lockout": found, "back": person_url(domain.id, user)}


@pages.submit("/people/person/unlock", roles=OPERATORS)
async def unlock(visit: Visit) -> Redirect:
    """Unlock the user."""
    domain, user = person_in_address(visit)
    answer = await visit.call("/ad/Unlock", {"userName": user}, domain=domain.id)
    return Redirect(person_url(domain.id, user), f"{user}: {answer['message']}.")


@pages.show("/people/person/prompts", "Send prompts again", roles=OPERATORS, template="prompts.html")
async def paused(visit: Visit) -> Context:
    """Show until when a user gets no prompt."""
    domain, user = person_in_address(visit)
    found = await named(visit, PAUSES, "pauses", {"search": user}, ("userName",), user, domain=domain.id)
    return {"title": f"Prompts of {user}", "pause": found, "back": person_url(domain.id, user)}


@pages.submit("/people/person/prompts", roles=OPERATORS)
async def resume_prompts(visit: Visit) -> Redirect:
    """Let the user get prompts again."""
    domain, user = person_in_address(visit)
    answer = await visit.call("/ad/EndPromptPause", {"userName": user}, domain=domain.id)
    return Redirect(person_url(domain.id, user), f"{user}: {answer['message']}.")


@pages.show("/people/person/disconnect", "End sessions", roles=OPERATORS, template="disconnect.html")
async def live_sessions(visit: Visit) -> Context:
    """Show the live sessions of a user, before the person ends them."""
    domain, user = person_in_address(visit)
    found = await _live(visit, domain, user)
    return {
        "title": f"End the sessions of {user}",
        "sessions": found,
        "columns": session_columns(domain.id),
        "results": None,
        "back": person_url(domain.id, user),
    }


@pages.submit("/people/person/disconnect", roles=OPERATORS, is_slow=True)
async def disconnect(visit: Visit) -> Context:
    """Ask the devices to end the sessions of a user. Show the result for each session."""
    domain, user = person_in_address(visit)
    answer = await visit.call("/network_device/DisconnectSession", {"userName": user}, domain=domain.id)
    return {
        "title": f"End the sessions of {user}",
        "results": entries(answer["results"]),
        "message": answer["message"],
        "back": person_url(domain.id, user),
    }


@pages.show("/lockouts", "Lock-outs", roles=READERS, template="lockouts.html", menu="People")
async def lockouts(visit: Visit) -> Context:
    """List the users and stations that are locked out."""
    domain = visit.domain()

    def link(row: Row) -> str:
        if row["kind"] == "user":
            return person_url(domain.id, str(row["name"]))
        return address("/lockouts/station", [("domain", str(domain.id)), ("station", str(row["name"]))])

    columns = (
        Column("name", "User or station", "mac", link=link),
        Column("kind", "Kind"),
        Column("failures", "Failures", "number"),
        Column("since", "Since", "time"),
        Column("until", "Until", "time"),
    )
    empty = "No lock-out: no user and no station of this domain has failed too often."
    body: dict[str, JSON] = {"search": visit.query.get("search", "")}
    filters = (Filter("search", "User or station"),)
    table = await listed(
        visit, columns, LOCKOUTS, "lockouts", body, domain=domain.id, filters=filters, empty=empty, most=1000
    )
    return {"domain": domain, "table": table}


@pages.show("/prompt-pauses", "Paused prompts", roles=READERS, template="prompt_pauses.html", menu="People")
async def prompt_pauses(visit: Visit) -> Context:
    """List the users who get no prompt at present."""
    domain = visit.domain()
    columns = (
        Column("userName", "User", link=lambda row: person_url(domain.id, str(row["userName"]))),
        Column("reason", "Reason"),
        Column("unanswered", "Prompts without an answer", "number"),
        Column("since", "Since", "time"),
        Column("until", "Until", "time"),
    )
    empty = "No pause: each user of this domain may get prompts."
    body: dict[str, JSON] = {"search": visit.query.get("search", "")}
    filters = (Filter("search", "User"),)
    table = await listed(
        visit, columns, PAUSES, "pauses", body, domain=domain.id, filters=filters, empty=empty, most=1000
    )
    return {"domain": domain, "table": table}


@pages.show("/lockouts/station", "Unlock a station", roles=OPERATORS, template="unlock.html")
async def locked_station(visit: Visit) -> Context:
    """Show the lock-out of a station."""
    domain, station = visit.domain(), visit.query.get("station", "")
    found = await _lockout(visit, domain, station, "station")
    return {"title": f"Unlock {as_mac(station)}", "lockout": found, "back": f"/lockouts?domain={domain.id}"}


@pages.submit("/lockouts/station", roles=OPERATORS)
async def unlock_station(visit: Visit) -> Redirect:
    """Unlock the station."""
    domain, station = visit.domain(), visit.query.get("station", "")
    answer = await visit.call("/ad/Unlock", {"station": station}, domain=domain.id)
    return Redirect(f"/lockouts?domain={domain.id}", f"{as_mac(station)}: {answer['message']}.")


def login_columns(domain: Domain) -> tuple[Column, ...]:
    """Return the columns of logins on the page of a person or a device."""
    shown = ("time", "user", "appliedDecision", "reason", "wouldHaveBeen", "device_name", "station", "method")
    link = {"time": lambda row: f"/logins/{row['eventId']}?domain={domain.id}"}
    return row_columns(EventRow, *shown, links=link)[: len(shown)]


def person_in_address(visit: Visit) -> tuple[Domain, str]:
    """Return the domain and the user name in the address. Raises NotFound if the address contains no user name."""
    user = visit.query.get("user", "").strip()
    if not user:
        raise NotFound("the address names no user")
    return visit.domain(), user


async def _live(visit: Visit, domain: Domain, user: str) -> list[Row]:
    """Return the live sessions of a user. Devices may send the name with or without a realm."""
    body: dict[str, JSON] = {"search": user, "live": True, "pageSize": 1000}
    found = entries((await visit.call("/network_device/ListSessions", body, domain=domain.id))["sessions"])
    realms = (domain.name, *domain.realms)
    qualified = [name for realm in realms for name in (f"{user}@{realm}", f"{realm}\\{user}")]
    names = {fold(name) for name in (user, *qualified)}
    return [row for row in found if fold(str(row["userName"])) in names]


def person_page(domain: Domain, user: str, action: str) -> str:
    """Return the address of a page about a person."""
    return address(f"/people/person/{action}", [("domain", str(domain.id)), ("user", user)])


def _filter(user: str) -> dict[str, JSON]:
    return {"filter": {"filterBy": "userName", "value": user}}


async def _lockout(visit: Visit, domain: Domain, name: str, kind: str = "user") -> Row | None:
    """Return the lock-out of a user or a station, or None."""
    answer = await visit.call(LOCKOUTS, {"search": name, "pageSize": 1000}, domain=domain.id)
    for row in entries(answer["lockouts"]):
        if row["kind"] == kind and fold(str(row["name"])) == fold(name):
            return row
    return None
