"""The import of another RADIUS server's configuration: a file becomes a plan, and the plan becomes objects.

The file has secrets in clear text and is kept nowhere. So the person chooses it again to write the plan, and the name
of the plan, which the form sends, proves that nothing has changed in between.
"""

from typing import Final

from sallyport.areas.migration.bodies import LISTED
from sallyport.areas.migration.operations import MAX_SIZE
from sallyport.base.wire import JSON
from sallyport.console.columns import Column, text_of
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS

pages = Pages()
FORMATS: Final = (
    ("nps", "NPS: the XML of netsh nps export"),
    ("ise", "Cisco ISE: the CSV file of network devices"),
    ("clearpass", "Aruba ClearPass: the XML of network devices"),
    ("freeradius", "FreeRADIUS 3: a tar.gz or zip of its folder"),
    ("csv", "any CSV file, with a list of its columns"),
)
STEPS: Final = (
    Column("sign", "Change"), Column("kind", "Kind"), Column("name", "Name"), Column("changes", "Values", "changes"),
    Column("source", "Place", "long"),
)  # fmt: skip
FINDINGS: Final = (
    Column("weight", "Means"), Column("name", "Element"), Column("text", "Why"), Column("source", "Place", "long"),
)  # fmt: skip
SIGNS: Final = {"+": "add", "~": "change"}


@pages.show("/import", "Import", roles=ADMINS, template="import.html", menu="Administration")
async def new_import(visit: Visit) -> Context:
    """Show the form for a file."""
    return {"domain": visit.domain(), "formats": FORMATS, "most": MAX_SIZE >> 20}


@pages.submit("/import", roles=ADMINS, template="import_plan.html", has_file=True)
async def plan_or_write(visit: Visit) -> Context | Redirect:
    """Show the plan of a file, or write it if the form has the name of the plan."""
    domain, sent = visit.domain(), dict[str, str]()
    found = await visit.upload("/ad/ImportConfiguration", sent)
    if found["applied"]:
        return Redirect("/import", f"{found['message']}. Delete the file if it has secrets.")
    steps = [
        {
            **each,
            "sign": SIGNS[str(each["sign"])],
            "changes": _changes(each["fields"]),
        }
        for each in entries(found["steps"])
    ]
    return {
        "title": "Plan of the import",
        "domain": domain,
        "sent": sent,
        "found": found,
        "steps": steps,
        "step_columns": STEPS,
        "shown": LISTED,
        "findings": entries(found["findings"]),
        "finding_columns": FINDINGS,
        "most": MAX_SIZE >> 20,
        "decisions": _lines(sent.get("decisions", ""), found["undecided"]),
        "groups": _lines(sent.get("groups", ""), found["unknownGroups"]),
    }


def _changes(fields: JSON) -> list[JSON]:
    """Return the values of an object as lines. A new object has no values before."""
    given = {
        name: values
        for name, values in (fields if isinstance(fields, dict) else {}).items()
        if isinstance(values, list)
    }
    texts = {name: [text_of(each) for each in values if each is not None] for name, values in given.items()}
    return [f"{name}: {' -> '.join(each)}" for name, each in texts.items()]


def _lines(sent: str, missing: JSON) -> str:
    """Return the lines of a field, with a line for each name that has no value yet."""
    names = missing if isinstance(missing, list) else []
    given = [line for line in sent.splitlines() if line.rpartition("=")[2].strip()]
    return "\n".join([*given, *(f"{name}=" for name in names)])
