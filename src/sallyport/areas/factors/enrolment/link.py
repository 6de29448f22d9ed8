"""An enrolment link, a person without a factor, and the progress of mails to a group."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso

PATH: Final = "/me/enrol/"
"""The path of links, below the pages of self-service. The secret follows."""
LINK_OCTETS: Final = 32
MAX_WRONG: Final = 5
"""Number of wrong passwords after which a link ends."""
MAX_LINKS: Final = 50_000
"""Maximum number of links in a domain, with those that have ended within the last week."""
KEPT_US: Final = 7 * 86_400 * SECOND
"""Time for which the row of an ended link is kept, so that operators see the progress; also the time after which a
queued mail is not sent any more. In microseconds."""
PAUSE_US: Final = 60 * SECOND
"""Minimum time between two mails that are requested for one person, in microseconds."""
RETRY_US: Final = 600 * SECOND
"""Time after which a mail whose sending was interrupted is sent again, in microseconds."""


class LinkState(StrEnum):
    """The states of a link. `queued`: a mail waits to be sent. `sending`: the mail is being sent. `sent`: the mail
    was sent. `given`: an operator got the link. `shown`: a challenge has shown the link. `failed`: the mail could
    not be sent. `used`: the person has signed in with the link. `ended`: too many wrong passwords, or an operator
    has withdrawn the link."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    GIVEN = "given"
    SHOWN = "shown"
    FAILED = "failed"
    USED = "used"
    ENDED = "ended"


OPEN: Final = (LinkState.SENDING, LinkState.SENT, LinkState.GIVEN, LinkState.SHOWN)
"""The states in which a link works. A mail may arrive before the service knows that it was sent."""


@dataclass(frozen=True, slots=True)
class EnrolmentLink:
    """An open link as it is stored. Times are in microseconds."""

    id: int
    domain_id: int
    user_name: str
    state: str
    wrong: int
    expires_at: int

    @property
    def person(self) -> Person:
        """The person of the link."""
        return Person(self.domain_id, self.user_name)


@dataclass(frozen=True, slots=True)
class NotEnrolled:
    """A person without a factor, and the state of the person's link."""

    user_name: Annotated[str, Wire("Name of the user.", "userName", title="User")]
    email: Annotated[str, Wire("Mail address in the directory; empty if there is none.", title="Mail address")]
    link: Annotated[
        str,
        Wire(
            "State of the user's last enrolment link: queued, sending, sent, given, shown, failed, used or ended; "
            "empty if there is none.",
            title="Link",
        ),
    ]
    problem: Annotated[str, Wire("Reason why the mail was not sent; otherwise empty.", title="Problem")]
    expires_at: Annotated[
        int | None,
        Wire("When the link expires, ISO 8601 UTC. Empty: no link.", "expiresAt", iso, empty=True, title="Expires"),
    ]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the mails to a group. Times are in microseconds."""

    group_name: Annotated[str, Wire("Name of the group.", "groupName", title="Group")]
    total: Annotated[int, Wire("Number of mails.", title="Mails")]
    queued: Annotated[int, Wire("Number of mails that wait to be sent.", title="Waiting")]
    sent: Annotated[int, Wire("Number of mails that were sent, with those of used links.", title="Sent")]
    used: Annotated[int, Wire("Number of people who have used their link.", title="Used")]
    failed: Annotated[int, Wire("Number of mails that could not be sent.", title="Failed")]
    made_at: Annotated[
        int, Wire("When the mails were requested last, ISO 8601 UTC.", "requestedAt", iso, title="Requested")
    ]
