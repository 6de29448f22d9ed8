"""Pages about network profiles: their settings, their files, and the link to them."""

from base64 import b64decode
from typing import Final

from starlette.responses import Response

from sallyport.areas.domains.domain import Domain
from sallyport.areas.profiles.bodies import LINK_DAYS
from sallyport.areas.profiles.profile import (
    LoginBy,
    Method,
    Profile,
    Security,
    new_profile,
)
from sallyport.base.answer import answer
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.reading import every, joined, lines, rights
from sallyport.console.table import SIZE, Filter, Table, is_export, page_of
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.link_page import HEADERS
from sallyport.web.scope import ADMINS, OPERATORS, READERS

pages = Pages()
LIST: Final = "/ad/ListProfiles"
SECURITIES: Final = (
    (Security.WPA2, "WPA2-Enterprise, or WPA3-Enterprise if the network has it"),
    (Security.WPA3, "WPA3-Enterprise only"),
)
LOGINS: Final = (
    (LoginBy.PERSON, "the person"),
    (LoginBy.MACHINE, "the machine"),
    (LoginBy.BOTH, "the machine, and the person after the sign-in"),
)
METHODS: Final = tuple((each, each.label) for each in Method)
FILTERS: Final = (Filter("search", "Name"),)
EMPTY: Final = (
    "No profile yet. A profile makes the files with which iPhones, Macs, Windows, Android and Linux join a network and "
    "trust only your server."
)
FILES: Final = (Column("title", "For", link=lambda row: str(row["address"])), Column("file", "File"))


@pages.show("/profiles", "Network profiles", roles=READERS, template="profiles.html", menu="Sign-in policy")
async def profiles(visit: Visit) -> Context:
    """List the profiles of a domain."""
    domain, page = visit.domain(), page_of(visit)
    found = await every(visit, LIST, "profiles", {"search": visit.query.get("search", "")}, domain=domain.id)
    shown = found if is_export(visit) else found[(page - 1) * SIZE : page * SIZE]
    columns = row_columns(
        Profile,
        "name",
        "ssids",
        "wired",
        Column("methodText", "Method"),
        "linkExpiresAt",
        links={"name": lambda row: _at("/profiles/show", row["domainId"], profile=row["name"])},
    )
    table = Table(visit, columns, [_row(each) for each in shown], len(found), page, SIZE, FILTERS, EMPTY)
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/profiles/show", "Network profile", roles=READERS, template="profile.html")
async def show(visit: Visit) -> Context:
    """Show what devices trust, the files of a profile, and the settings to type on Android."""
    domain = visit.domain()
    profile = await _profile(visit, domain)
    files = [
        {**each, "address": _at("/profiles/file", domain.id, profile=profile["name"], file=each["file"])}
        for each in entries(profile["files"])
    ]
    return {
        "title": f"Network profile {profile['name']}",
        "domain": domain,
        "profile": _row(profile),
        "security": dict(SECURITIES)[Security(str(profile["security"]))],
        "logs_in": dict(LOGINS)[LoginBy(str(profile["loginBy"]))],
        "files": files,
        "columns": FILES,
        **rights(visit),
    }


@pages.show("/profiles/file", "File of a profile", roles=READERS)
async def file(visit: Visit) -> Response:
    """Send a file of a profile."""
    body: Row = {"name": visit.query.get("profile", ""), "file": visit.query.get("file", "")}
    made = await visit.call("/ad/GetProfileFile", body, domain=visit.domain().id)
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{made["file"]}"'}
    return Response(b64decode(str(made["content"])), headers=headers, media_type=str(made["mediaType"]))


@pages.show("/profiles/set", "Set a network profile", roles=ADMINS, template="profile_set.html")
async def edit(visit: Visit) -> Context:
    """Show the form of a profile. A new profile begins with values that suit the domain."""
    domain = visit.domain()
    if visit.query.get("profile"):
        profile = await _profile(visit, domain)
    else:
        profile = answer(new_profile(domain, ""), warnings=[])
    return {
        "domain": domain,
        "profile": profile,
        "is_new": not profile["name"],
        "texts": {name: "\n".join(map(str, entry)) for name, entry in profile.items() if isinstance(entry, list)},
        "securities": SECURITIES,
        "logins": LOGINS,
        "methods": METHODS,
    }


@pages.submit("/profiles/set", roles=ADMINS)
async def set_(visit: Visit) -> Redirect:
    """Change a profile, or add one."""
    domain, fields = visit.domain(), visit.fields
    name = visit.query.get("profile") or fields.get("name", "")
    body: Row = {
        "name": name,
        # An SSID may begin and end with spaces.
        "ssids": list[JSON]([line for line in fields.get("ssids", "").splitlines() if line]),
        "hidden": "hidden" in fields,
        "wired": "wired" in fields,
        "serverNames": lines(fields.get("serverNames", "")),
        **{each: fields.get(each, "") for each in ("security", "method", "loginBy", "outerIdentity", "anchors")},
    }
    await visit.call("/ad/SetProfile", body, domain=domain.id)
    return Redirect(
        _at("/profiles/show", domain.id, profile=name.strip()),
        "The profile is stored. Devices get it with the next file that is installed.",
    )


@pages.show("/profiles/link", "Make a link", roles=OPERATORS, template="profile_link_add.html")
async def link_form(visit: Visit) -> Context:
    """Show the form of a new link."""
    domain = visit.domain()
    return {"domain": domain, "profile": await _profile(visit, domain), "days": LINK_DAYS}


@pages.submit("/profiles/link", roles=OPERATORS, template="profile_link_made.html")
async def make_link(visit: Visit) -> Context:
    """Make a link, and show it once. With 0 days, the present link ends."""
    domain = visit.domain()
    body: Row = {"name": visit.query.get("profile", ""), "days": visit.fields.get("days", "")}
    made = await visit.call("/ad/MakeProfileLink", body, domain=domain.id)
    title = "The link is made" if made["link"] else "The link has ended"
    return {"domain": domain, "made": made, "name": body["name"], "title": title}


@pages.show("/profiles/remove", "Remove a network profile", roles=ADMINS, template="confirm.html")
async def confirm(visit: Visit) -> Context:
    """Show the profile that would be removed."""
    domain = visit.domain()
    profile = await _profile(visit, domain)
    link = "ends with the removal" if profile["linkExpiresAt"] else "none"
    return {
        "text": "Devices that have installed a file of the profile keep it.",
        "facts": [
            ("Profile", str(profile["name"])),
            ("Domain", domain.name),
            ("Wi-Fi networks", joined(profile["ssids"]) or "none"),
            ("Link", link),
        ],
        "button": "Remove the profile",
        "back": _at("/profiles/show", domain.id, profile=profile["name"]),
    }


@pages.submit("/profiles/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove a profile and its link."""
    domain = visit.domain()
    await visit.call("/ad/RemoveProfile", {"name": visit.query.get("profile", "")}, domain=domain.id)
    return Redirect(_at("/profiles", domain.id), "The profile is removed.")


async def _profile(visit: Visit, domain: Domain) -> Row:
    return await visit.call("/ad/ShowProfile", {"name": visit.query.get("profile", "")}, domain=domain.id)


def _at(path: str, domain: object, **parameters: object) -> str:
    return address(path, [("domain", str(domain)), *((name, str(value)) for name, value in parameters.items())])


def _row(profile: Row) -> Row:
    """Return a profile with its method as text."""
    return {**profile, "methodText": Method(str(profile["method"])).label}
