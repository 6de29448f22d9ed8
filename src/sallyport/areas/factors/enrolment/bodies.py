"""Request and response bodies of /ad/EnrolUser, /ad/EnrolGroup, /ad/ListNotEnrolled and /ad/GetEnrolmentProgress."""

from enum import StrEnum

from pydantic import Field

from sallyport.areas.factors.enrolment.link import NotEnrolled, Progress
from sallyport.areas.users.accounts.fields import UserName
from sallyport.base.model import Model, answer_of
from sallyport.web.bodies import InDomain, Paged, Text, TotalCount


class LinkBy(StrEnum):
    """How a person gets the link."""

    LINK = "link"
    MAIL = "mail"


class EnrolUser(InDomain):
    """Request body of the operation `EnrolUser`."""

    userName: UserName = Field(description="Name of the user.")
    by: LinkBy = Field(
        default=LinkBy.LINK,
        description="How the user gets the link: `link` (the answer has it, and the caller hands it over) or `mail`.",
    )


class EnrolGroup(InDomain):
    """Request body of the operation `EnrolGroup`."""

    groupName: Text = Field(min_length=1, description="Name of a group of the domain, or of its directories.")


class ListNotEnrolled(InDomain, Paged):
    """Request body of the operation `ListNotEnrolled`."""

    groupName: Text = Field(default="", description="Name of a group, to list only its people.")


class UserEnrolled(Model):
    """Response body of the operation `EnrolUser`."""

    message: str = Field(description="Result in words.")
    link: str = Field(description="The link, which no other answer contains. Empty if it is sent by mail.")
    address: str = Field(description="Mail address to which the link is sent. Empty if the answer has the link.")
    expiresAt: str = Field(
        description="When the link expires, ISO 8601 UTC. Empty for a mail: the link is made when the mail is sent."
    )


class GroupEnrolled(Model):
    """Response body of the operation `EnrolGroup`."""

    message: str = Field(description="Result in words.")
    queued: int = Field(description="Number of mails that will be sent.")
    withoutAddress: int = Field(description="Number of people without a factor and without a mail address.")
    waiting: int = Field(description="Number of people with a queued mail, or with a valid link by mail.")
    skipped: int = Field(description="Number of administrators, whose factors only the role admin may change.")


@answer_of(NotEnrolled)
class NotEnrolledEntry(Model):
    """A person without a factor."""


class NotEnrolledList(Model):
    """Response body of the operation `ListNotEnrolled`."""

    users: list[NotEnrolledEntry] = Field(description="People of the page, ordered by name.")
    totalCount: TotalCount


@answer_of(Progress)
class ProgressEntry(Model):
    """The progress of the mails to a group."""


class ProgressList(Model):
    """Response body of the operation `GetEnrolmentProgress`."""

    groups: list[ProgressEntry] = Field(description="Groups to which mails were sent within the last week.")
