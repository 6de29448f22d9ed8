"""The request and the answer of /api/v1/audit/list."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from sallyport.areas.audit.repo import AuditRow
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Moment
from sallyport.web.bodies import AddressOrText, IsMinimum, Paged, ScopedIfGiven, Text, TotalCount, Whole


def _none_where_empty(value: object) -> object:
    return None if value == "" else value


MomentIfGiven = Annotated[Moment | None, BeforeValidator(_none_where_empty)]


class ListAudit(ScopedIfGiven, Paged):
    """Request body of the operation audit/list. An empty field means no filter."""

    domainId: Whole | None = Field(
        default=None,
        description="Id of a domain, to list only its entries. If it is absent, all entries of the tenant are listed.",
    )
    search: AddressOrText = Field(
        default="",
        description="Text, to list only entries that contain it in `action`, `actor`, `target`, `changes` or "
        "`requestId` (case-insensitive).",
    )
    action: Text = Field(default="", description="Action, such as `domain.add`, to list only entries with this action.")
    actor: Text = Field(
        default="",
        description="Actor, to list only entries of this actor: the name of a token, of an API key or of a local user.",
    )
    since: MomentIfGiven = Field(default=None, validation_alias="from", description="Start of the period, ISO 8601.")
    until: MomentIfGiven = Field(
        default=None, validation_alias="to", description="End of the period (exclusive), ISO 8601."
    )

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


@answer_of(AuditRow)
class AuditEntry(Model):
    """An entry of the audit trail."""


class AuditList(Done):
    """Response body of the operation audit/list."""

    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False
    entries: list[AuditEntry] = Field(description="Entries on this page, the newest first.")
