"""HTTP operations of enrolment: /ad/EnrolUser, /ad/EnrolGroup, /ad/ListNotEnrolled and /ad/GetEnrolmentProgress."""

from collections.abc import Callable

from sallyport.areas.factors.enrolment.bodies import (
    EnrolGroup,
    EnrolUser,
    GroupEnrolled,
    LinkBy,
    ListNotEnrolled,
    NotEnrolledList,
    ProgressList,
    UserEnrolled,
)
from sallyport.areas.factors.enrolment.service import EnrolmentLinks
from sallyport.areas.users.administrators import Administrators
from sallyport.base.answer import answers
from sallyport.base.clock import iso
from sallyport.base.text import counted
from sallyport.web.bodies import InDomain, Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate


def operations(
    service: EnrolmentLinks,
    administrators: Administrators,
    link_to: Callable[[str], str],
    check_mail: Callable[[], None],
    gate: Gate,
) -> Operations:
    """Return the operations of enrolment. link_to: returns the address of a link; raises Conflict if the settings allow
    no links. check_mail: raises Conflict if the settings allow no mail."""
    enrolment = Operations("Factors", gate)

    @enrolment.post("/ad/EnrolUser", roles=OPERATORS)
    async def enrol_user(body: EnrolUser, caller: Caller) -> UserEnrolled:
        """Make a link with which a user adds a second factor. It expires, works once, and asks for the user's password.
        A new link replaces the former link of the user. Only the role admin makes links for administrators."""
        link_to("")
        person = await service.person(body.domainId, body.userName)
        await administrators.check(body.domainId, person.name, caller)
        if body.by is LinkBy.MAIL:
            check_mail()
            address = await service.mail(person)
            text = f"a link is sent to {address}"
            return UserEnrolled(message=text, link="", address=address, expiresAt="")
        secret, expires_at = await service.make(person)
        text = f"hand over the link to {person.name}"
        return UserEnrolled(message=text, link=link_to(secret), address="", expiresAt=iso(expires_at))

    @enrolment.post("/ad/EnrolGroup", roles=OPERATORS)
    async def enrol_group(body: EnrolGroup, caller: Caller) -> GroupEnrolled:
        """Send a link to each person of a group that has no second factor. GetEnrolmentProgress shows the progress.

        People without a mail address are left out, people with a valid link by mail, and administrators if the caller
        does not have the role admin.
        """
        link_to("")
        check_mail()
        found = await service.mail_group(body.domainId, body.groupName, is_admin=caller.role in ADMINS)
        return GroupEnrolled(
            message=f"{counted(found.queued, 'mail')} will be sent",
            queued=found.queued,
            withoutAddress=found.without_address,
            waiting=found.waiting,
            skipped=found.skipped,
        )

    @enrolment.post("/ad/ListNotEnrolled", roles=READERS)
    async def list_not_enrolled(body: ListNotEnrolled, caller: Caller) -> Plain[NotEnrolledList]:
        """List the people of a domain without a passkey and without an authenticator app, ordered by name.

        They are the domain's endpoint users with a password if its first factor is `local`, and the active people of
        its directories otherwise.
        """
        page = body.page()
        found, total = await service.not_enrolled(body.domainId, body.groupName, page.offset, page.size)
        return Plain({"users": answers(found), "totalCount": total})

    @enrolment.post("/ad/GetEnrolmentProgress", roles=READERS)
    async def get_enrolment_progress(body: InDomain, caller: Caller) -> Plain[ProgressList]:
        """Return for each group how many of its mails with enrolment links were sent, and how many links were used."""
        return Plain({"groups": answers(await service.progress(body.domainId))})

    return enrolment
