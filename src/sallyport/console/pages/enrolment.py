"""People without a second factor: the list, the mails with links to a group, and the link of one person."""

from typing import Final

from sallyport.areas.factors.enrolment.link import NotEnrolled
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.people import person_in_address, person_page
from sallyport.console.pages.reading import rights
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
PATH: Final = "/not-enrolled"
LINK: Final = "enrolment-link"
WAYS: Final = (("mail", "by mail, to the address in the directory"), ("link", "I hand it over"))


@pages.show(PATH, "Not enrolled", roles=READERS, template="not_enrolled.html", menu="People")
async def not_enrolled(visit: Visit) -> Context:
    """List the people without a passkey and without an authenticator app, and the progress of the mails to groups."""
    domain, group = visit.domain(), visit.query.get("group", "")

    def link(row: Row) -> str:
        user = str(row["userName"])
        return person_page(domain, user, LINK) if visit.may(OPERATORS) else person_url(domain.id, user)

    table = await listed(
        visit,
        row_columns(NotEnrolled, "userName", "email", "link", "problem", "expiresAt", links={"userName": link}),
        "/ad/ListNotEnrolled",
        "users",
        {"groupName": group},
        domain=domain.id,
        filters=(Filter("group", "Group"),),
        empty="Everybody has a second factor. If the domain asks a directory, only the "
        "people of synchronised directories are known.",
        most=1000,
    )
    progress = entries((await visit.call("/ad/GetEnrolmentProgress", domain=domain.id))["groups"])
    sending = address(f"{PATH}/mail", [("domain", str(domain.id)), ("group", group)])
    return {"domain": domain, "table": table, "progress": progress, "sending": sending, **rights(visit)}


@pages.show(f"{PATH}/mail", "Send enrolment links", roles=OPERATORS, template="not_enrolled_mail.html")
async def mail_form(visit: Visit) -> Context:
    """Show the form that sends links to a group, with the number of people."""
    domain, group = visit.domain(), visit.query.get("group", "")
    count: JSON = None
    if group:
        body: dict[str, JSON] = {"groupName": group, "pageSize": 1}
        count = (await visit.call("/ad/ListNotEnrolled", body, domain=domain.id))["totalCount"]
    return {"domain": domain, "group": group, "count": count, "back": _list(domain.id, group)}


@pages.submit(f"{PATH}/mail", roles=OPERATORS)
async def send(visit: Visit) -> Redirect:
    """Queue the mails."""
    domain, group = visit.domain(), visit.fields.get("group", "").strip()
    done = await visit.call("/ad/EnrolGroup", {"groupName": group}, domain=domain.id)
    left = f", {done['withoutAddress']} people have no mail address" if done["withoutAddress"] else ""
    skipped = f", {done['skipped']} are administrators" if done["skipped"] else ""
    return Redirect(_list(domain.id, group), f"{done['message']}{left}{skipped}.")


@pages.show(f"/people/person/{LINK}", "Enrolment link", roles=OPERATORS, template="enrolment_link.html")
async def link_form(visit: Visit) -> Context:
    """Show the form that makes a link for a person."""
    domain, user = person_in_address(visit)
    return {
        "title": f"Enrolment link for {user}",
        "user": user,
        "ways": WAYS,
        "back": person_url(domain.id, user),
    }


@pages.submit(f"/people/person/{LINK}", roles=OPERATORS, template="enrolment_link_made.html")
async def make(visit: Visit) -> Redirect | Context:
    """Make the link. Show it once, or queue the mail."""
    domain, user = person_in_address(visit)
    body: dict[str, JSON] = {"userName": user, "by": visit.fields.get("by", "link")}
    made = await visit.call("/ad/EnrolUser", body, domain=domain.id)
    if not made["link"]:
        message = str(made["message"])
        return Redirect(person_url(domain.id, user), f"{message[:1].upper()}{message[1:]}.")
    return {"title": f"Enrolment link for {user}", "made": made, "user": user, "back": person_url(domain.id, user)}


def _list(domain_id: int, group: str) -> str:
    return address(PATH, [("domain", str(domain_id)), ("group", group)])
