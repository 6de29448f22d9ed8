"""The audit trail in the interface."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue

from sallyport.base.model import Model
from sallyport.base.validation import Moment
from sallyport.web.paging import Paged
from sallyport.web.scope import AddressOrText, ScopedIfGiven, Text, Whole


def _none_where_empty(value: object) -> object:
    return None if value == "" else value


MomentIfGiven = Annotated[Moment | None, BeforeValidator(_none_where_empty)]


class ListAudit(ScopedIfGiven, Paged):
    """Body of audit/list. Without domainId: all of the tenant's. An empty text is no filter.

    search: a part of action, actor, target or changes, in any case. action, actor: equal to this. from (included), to
    (not): ISO 8601.
    """

    domainId: Whole | None = None
    search: AddressOrText = ""
    action: Text = ""
    actor: Text = ""
    since: MomentIfGiven = Field(default=None, validation_alias="from")
    until: MomentIfGiven = Field(default=None, validation_alias="to")

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


class AuditEntry(Model):
    """Who did what to what. time: ISO 8601 UTC. tokenId: of the token that acted, else null. domainId: null for what is
    of no domain. changes: [before, after] of each field; a secret is only named."""

    auditId: int
    time: str
    actorKind: str
    actor: str
    tokenId: int | None
    action: str
    target: str
    domainId: int | None
    changes: dict[str, JsonValue]


class AuditList(Model):
    """Answer of audit/list, newest first."""

    code: int = 200
    status: str = "Success"
    message: str
    totalCount: int
    entries: list[AuditEntry]
