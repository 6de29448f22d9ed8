"""Enforcement: the preview with names and reasons, the switch of the mode, its confirmation, and break-glass."""

from collections.abc import Mapping
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.domains.enforcement import DEFAULT_DAYS
from sallyport.base.clock import iso_or_empty
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column
from sallyport.console.pages.reading import domain_at, rights
from sallyport.console.table import Filter, complete
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, INSTALLATIONS, OPERATORS, READERS

pages = Pages()
DAYS: Final = (("1", "1 day"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"))
FALLBACKS: Final = (("deny", "deny the login"), ("allow", "allow the login"))
REVERTS: Final = (
    ("15", "after 15 minutes"), ("60", "after an hour"), ("480", "after 8 hours"), ("1440", "after a day"),
    ("10080", "after a week"), ("", "never: the new mode stays"),
)  # fmt: skip
OUTCOMES: Final = (
    ("reject", "reject"),
    ("unknown", "unknown"),
    ("challenge", "challenge"),
    ("accept", "accept"),
)
MAX_DECIDED: Final = 50_000
"""About how many pairs of a user and a device a page decides at first."""
PREVIEW_FILTERS: Final = (
    Filter("search", "Search"),
    Filter("outcome", "Outcome", OUTCOMES),
)


def user_columns(domain: Domain) -> tuple[Column, ...]:
    """Return the columns of the users in a preview."""
    return (
        Column("user", "User", link=lambda row: person_url(domain.id, str(row["user"]))),
        Column("outcome", "In enforce mode", "outcome"),
        Column("reason", "Reason"),
        Column("logins", "Logins", "number"),
        Column("lastSeen", "Last login", "age"),
    )


def device_columns(domain: Domain) -> tuple[Column, ...]:
    """Return the columns of the devices in a preview."""
    return (
        Column("device_name", "Device", link=lambda row: f"/devices/{row['device_id']}?domain={domain.id}"),
        Column("outcome", "Worst outcome", "outcome"),
        Column("reason", "Reason"),
    )


async def decided(visit: Visit, domain: Domain, body: Mapping[str, JSON]) -> Row:
    """Return the answer of PreviewEnforcement, with MAX_DECIDED as the field `limit`. Only the newest logins are
    decided, of about MAX_DECIDED pairs of a user and a device, unless the person wants to decide all logins (`all` in
    the address). Raises Refused, StoreError."""
    limit: Row = {} if visit.query.get("all") else {"pairs": MAX_DECIDED}
    answer = await visit.call("/ad/PreviewEnforcement", {**body, **limit}, domain=domain.id)
    return {**answer, "limit": MAX_DECIDED}


@pages.show("/domains/{domain}/preview", "Preview of enforcement", roles=READERS, template="preview.html", is_slow=True)
async def preview(visit: Visit) -> Context:
    """Show the effect of enforce mode on the users and devices with recent logins."""
    domain, days = domain_at(visit), _choice(visit.query.get("days"), DAYS, str(DEFAULT_DAYS))
    impact = await decided(visit, domain, {"days": days})
    outcome = visit.query.get("outcome", "")
    users = [row for row in entries(impact["users"]) if outcome in ("", row["outcome"])]
    table = complete(
        visit,
        user_columns(domain),
        users,
        filters=PREVIEW_FILTERS,
        empty="No login of this time has passed its first factor, so there is nothing to preview yet.",
    )
    table.kept = ("days", "all")
    return {
        "title": f"Preview of enforcement in {domain.name}",
        "domain": domain,
        "impact": impact,
        "table": table,
        "days": days,
        "day_choices": DAYS,
        "device_columns": device_columns(domain),
        "devices": [row for row in entries(impact["devices"]) if row["outcome"] != "accept"],
        **rights(visit),
    }


@pages.show("/domains/{domain}/enrolments", "Check enrolments", roles=OPERATORS, template="enrolments.html")
async def enrolments(visit: Visit) -> Context:
    """Show the form that starts a check whether users are enrolled at the provider."""
    domain = domain_at(visit)
    return {"title": f"Check the enrolments in {domain.name}", "domain": domain}


@pages.submit("/domains/{domain}/enrolments", roles=OPERATORS, is_slow=True)
async def check_enrolments(visit: Visit) -> Redirect:
    """Ask the provider about the users whose enrolment is not known."""
    domain = domain_at(visit)
    found = await visit.call("/ad/CheckEnrolments", {"again": visit.fields.get("again", "no")}, domain=domain.id)
    left = counted(found["left"], "enrolment is", "enrolments are")
    told = f"{left} not known yet: check again to continue." if found["left"] else "All enrolments are known."
    people = counted(found["users"], "user of recent logins needs", "users of recent logins need")
    return Redirect(f"/domains/{domain.id}/preview", f"{people} a second factor. {told}")


@pages.show("/domains/{domain}/mode", "Switch the mode", roles=ADMINS, template="domain_mode.html", is_slow=True)
async def mode(visit: Visit) -> Context:
    """Show the effect of a switch of the mode. The page names the users and devices whose logins enforce mode would
    reject, or may reject."""
    domain, to = domain_at(visit), _mode(visit)
    fallback = _choice(visit.query.get("fallback"), FALLBACKS, domain.fallback.value)
    impact: Row = {}
    if to == "enforce":
        impact = await decided(visit, domain, {"fallbackAction": fallback})
    refused = ("reject", "unknown")
    return {
        "title": f"Switch {domain.name} to {to}" if to != domain.mode else f"Change the fallback of {domain.name}",
        "domain": domain,
        "to": to,
        "fallback": fallback,
        "fallbacks": FALLBACKS,
        "reverts": REVERTS,
        "impact": impact,
        "user_columns": user_columns(domain),
        "users": [row for row in entries(impact.get("users")) if row["outcome"] in refused],
        "device_columns": device_columns(domain),
        "devices": [row for row in entries(impact.get("devices")) if row["outcome"] in refused],
    }


@pages.submit("/domains/{domain}/mode", roles=ADMINS, is_slow=True)
async def switch(visit: Visit) -> Redirect:
    """Switch the mode, with the fallback action that the page has shown."""
    domain, to, minutes = domain_at(visit), _mode(visit), visit.fields.get("revert", "")
    body: dict[str, JSON] = {
        "enforcementMode": to,
        "fallbackAction": _choice(visit.query.get("fallback"), FALLBACKS, domain.fallback.value),
        "requireClean": visit.fields.get("clean", "no"),
    }
    if minutes:
        body["revertAfterMinutes"] = minutes
    answer = await visit.call("/ad/updateDomainEnforcement", body, domain=domain.id)
    until = "It reverts unless you confirm it in time." if answer["revertsAt"] else "It stays."
    return Redirect(f"/domains/{domain.id}", f"{domain.name} is in {to} mode from now on. {until}")


@pages.show("/domains/{domain}/confirm", "Keep the mode", roles=ADMINS, template="domain_confirm.html")
async def confirmation(visit: Visit) -> Context:
    """Show the mode that will be reverted, and the form that keeps the mode."""
    domain = domain_at(visit)
    return {"title": f"Keep the mode of {domain.name}", "domain": domain, "reverts_at": iso_or_empty(domain.reverts_at)}


@pages.submit("/domains/{domain}/confirm", roles=ADMINS)
async def confirm(visit: Visit) -> Redirect:
    """Confirm the new mode of the domain, so that it is not reverted."""
    domain = domain_at(visit)
    await visit.call("/ad/updateDomainEnforcement", {"confirm": True}, domain=domain.id)
    return Redirect(f"/domains/{domain.id}", f"{domain.name} stays in {domain.mode} mode.")


@pages.show("/break-glass", "Break-glass", roles=INSTALLATIONS, template="break_glass.html", menu="Installation")
async def break_glass(visit: Visit) -> Context:
    """Show what break-glass would do."""
    return {"count": len(visit.services.domains.table.by_id)}


@pages.submit("/break-glass", roles=INSTALLATIONS)
async def use_break_glass(visit: Visit) -> Redirect:
    """Switch every domain of the installation to monitor, or restore the modes that were set before break-glass."""
    if visit.fields.get("action") == "restore":
        found = await visit.command("domain.restore")
        number = len(entries(found.get("domains") if isinstance(found, dict) else None))
        return Redirect("/break-glass", f"The former mode of {counted(number, 'domain')} is restored.")
    await visit.command("domain.break_glass")
    return Redirect("/break-glass", "Every domain is in monitor mode: no login waits for a second factor.")


def person_url(domain_id: int, user: str) -> str:
    """Return the address of the page of a person."""
    return address("/people/person", [("domain", str(domain_id)), ("user", user)])


def _mode(visit: Visit) -> str:
    return "enforce" if visit.query.get("to") == "enforce" else "monitor"


def _choice(text: str | None, choices: tuple[tuple[str, str], ...], default: str) -> str:
    """Return a text from the address if it is one of the choices. Otherwise return the default."""
    return text if text in {value for value, _ in choices} and text is not None else default
