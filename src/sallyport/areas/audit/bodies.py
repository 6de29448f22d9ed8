"""The request and the answer of /api/v1/audit/list."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue

from sallyport.base.model import Done, Model
from sallyport.base.validation import Moment
from sallyport.web.paging import IsMinimum, Paged, TotalCount
from sallyport.web.scope import AddressOrText, ScopedIfGiven, Text, Whole


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
        description="Text, to list only entries that contain it in `action`, `actor`, `target` or `changes` "
        "(case-insensitive).",
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


class AuditEntry(Model):
    """An entry of the audit trail."""

    auditId: int = Field(description="Id of the entry; later entries have higher ids.")
    time: str = Field(description="Time of the change, ISO 8601 in UTC.")
    actorKind: str = Field(description="Kind of the actor: token, administrator, agent, command line or service.")
    actor: str = Field(description="Name of the actor.")
    tokenId: int | None = Field(description="Id of the actor's token, or null if the actor is not a token.")
    action: str = Field(description="Action, such as `domain.add`.")
    target: str = Field(description="Object that was changed, as text.")
    domainId: int | None = Field(description="Id of the domain, or null if the change concerns no domain.")
    changes: dict[str, JsonValue] = Field(
        description="Changed fields, each as [before, after]. The values of secrets are hidden. Long values are "
        "truncated, and more so on a page with many long entries."
    )


class AuditList(Done):
    """Response body of the operation audit/list."""

    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False
    entries: list[AuditEntry] = Field(description="Entries on this page, the newest first.")
