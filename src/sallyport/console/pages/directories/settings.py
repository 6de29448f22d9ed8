"""The settings of a directory, their test, and the schedule of its readings."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.errors import Invalid
from sallyport.base.wire import Row
from sallyport.console.pages.directories.directories import KINDS
from sallyport.console.pages.directories.finding import (
    address_of,
    all_directories,
    directory_at,
    schedule_of,
)
from sallyport.console.pages.reading import lines, of
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS

pages = Pages()
FLAGS: Final = ("startTls", "readDevices")
TEXTS: Final = ("kind", "appUrl", "baseDN", "filter", "bindDN", "accountName", "tenant", "clientId", "caCertificate")


@pages.show("/directories/add", "Add a directory", roles=OPERATORS, template="directory_form.html")
async def new(visit: Visit) -> Context:
    """Show the form of a new directory."""
    return _form(visit.domain(), None)


@pages.submit("/directories/add", roles=OPERATORS, is_slow=True)
async def add(visit: Visit) -> Redirect | Context:
    """Test the settings of a new directory, and add it if it can be read."""
    domain = visit.domain()
    name = visit.fields.get("directoryName", "").strip()
    known = [str(each["directoryName"]).casefold() for each in await all_directories(visit, domain)]
    if name.casefold() in known:
        raise Invalid.about("the domain already has a directory of this name", "directoryName")
    tried = await _tried(visit, domain, name)
    if tried is not None:
        return {**_form(domain, None), "tried": tried}
    await visit.call("/api/v1/saveDirectoryConfig", [_body(visit, name)], domain=domain.id)
    return Redirect(of("/directories", domain), f"The directory {name} is added. Read it now, or set a schedule.")


@pages.show("/directories/{directory}/edit", "Settings of a directory", roles=OPERATORS, template="directory_form.html")
async def edit(visit: Visit) -> Context:
    """Show the form of the settings."""
    domain = visit.domain()
    found = await directory_at(visit, domain)
    return {**_form(domain, found), "title": f"Settings of {found['directoryName']}"}


@pages.submit("/directories/{directory}/edit", roles=OPERATORS, is_slow=True)
async def change(visit: Visit) -> Redirect | Context:
    """Test the settings, and save them if the directory can be read with them."""
    domain = visit.domain()
    found = await directory_at(visit, domain)
    name = str(found["directoryName"])
    tried = await _tried(visit, domain, name)
    if tried is not None:
        return {**_form(domain, found), "title": f"Settings of {name}", "tried": tried}
    await visit.call("/api/v1/saveDirectoryConfig", [_body(visit, name)], domain=domain.id)
    return Redirect(address_of(found, domain), "The settings are saved. The next reading uses them.")


@pages.show(
    "/directories/{directory}/schedule", "Schedule of a directory", roles=OPERATORS, template="directory_schedule.html"
)
async def timing(visit: Visit) -> Context:
    """Show the form of the schedule."""
    domain = visit.domain()
    found = await directory_at(visit, domain)
    return {"domain": domain, "directory": found, "schedule": await schedule_of(visit, domain, found)}


@pages.submit("/directories/{directory}/schedule", roles=OPERATORS)
async def set_timing(visit: Visit) -> Redirect:
    """Set the schedule."""
    domain, fields = visit.domain(), visit.fields
    found = await directory_at(visit, domain)
    body: Row = {
        "directoryName": found["directoryName"],
        "everyMinutes": fields.get("everyMinutes") or 0,
        "timesOfDay": lines(fields.get("timesOfDay", "").replace(",", "\n")),
        "timeZone": fields.get("timeZone") or "UTC",
        "fullEvery": fields.get("fullEvery") or 24,
    }
    answer = await visit.call("/api/v1/directory/setSchedule", body, domain=domain.id)
    text = "The schedule is set." if answer["nextRun"] else "The directory is read on request only."
    return Redirect(address_of(found, domain), text)


def _form(domain: Domain, directory: Row | None) -> dict[str, object]:
    settings = directory["settings"] if directory is not None and isinstance(directory["settings"], dict) else {}
    stored = {"kind": "", "appUrl": "", "accountName": "", **(directory or {}), **settings}
    values = {name: stored.get(name, "") for name in TEXTS}
    return {
        "domain": domain,
        "directory": directory,
        "values": {**values, **{name: settings.get(name) == "true" for name in FLAGS}},
        "kinds": [("", "by the URL"), *KINDS.items()],
        "tried": None,
    }


def _body(visit: Visit, name: str) -> Row:
    """Return the submitted settings. If a secret in the form is empty, the stored secret stays."""
    fields = visit.fields
    body: Row = {"directoryName": name, **{key: fields.get(key, "") for key in TEXTS if key != "kind"}}
    body |= {name: bool(fields.get(name)) for name in FLAGS}
    body["appUrl"] = " ".join(str(body["appUrl"]).split())
    if fields.get("kind"):
        body["kind"] = fields["kind"]
    if fields.get("secret"):
        body["bindPassword"] = fields["secret"]
    return body


async def _tried(visit: Visit, domain: Domain, name: str) -> Row | None:
    """Test the submitted settings, and return the result to show. Return None if the caller must save the settings.

    They are saved if the test succeeds, or if the person wants to save them without a test. If the person asks only for
    a test, the result is always returned.
    """
    do, kind = visit.fields.get("do"), visit.fields.get("kind", "")
    if do == "save" or kind in ("agent", "ldif"):
        return None
    tried = await visit.call("/api/v1/directory/check", _body(visit, name), domain=domain.id)
    return None if tried["usable"] and do != "test" else tried
