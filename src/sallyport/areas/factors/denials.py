"""What follows when a person says of a login: "This is not me".

The person can say this at a provider, on the step-up page, or later on the page of their own factors. An attacker then
knows the person's password. So in one transaction the denial is stored together with everything that it ends: each part
of the service that keeps something of the person registers a function for this (`Denials.on_denial`). A pause of the
person's prompts begins too (`pauses`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog

from sallyport.areas.factors.pauses.service import Pauses
from sallyport.base.clock import Clock, now_us
from sallyport.base.text import fold_name
from sallyport.base.wire import JSON
from sallyport.nodes.notices import Notices
from sallyport.store import audit
from sallyport.store.model import Store, Tx

_NOTICE: Final = "not_me"

log = structlog.get_logger()


class DeniedAt(StrEnum):
    """The places where a person can deny a login."""

    PROVIDER = "provider"
    PAGE = "step-up page"
    OWN_PAGES = "own pages"


@dataclass(frozen=True, slots=True)
class Denial:
    """A person's statement that a login is not theirs.

    user: the name by which logins know the person (`Login.principal`). where: the place of the statement. is_checked:
    whether the login had passed a first factor. If no password was checked, anybody who knows the name can start such a
    login and deny it. The denial then ends this login alone, which is the caller's part.
    """

    domain_id: int
    user: str
    where: DeniedAt
    is_checked: bool = True

    @property
    def person(self) -> tuple[int, str]:
        """The id of the domain, and the user's name in the form for comparison."""
        return self.domain_id, fold_name(self.user)


Write = Callable[[Tx, Denial], None]
After = Callable[[Denial], None]


class Denials:
    """The denials of all domains. notices: the notices between the nodes."""

    def __init__(self, store: Store, notices: Notices, pauses: Pauses, clock: Clock = now_us) -> None:
        self._store = store
        self._notices = notices
        self.pauses = pauses
        self._clock = clock
        self._writes: list[Write] = []
        self._after: list[After] = []
        notices.receive(_NOTICE, self._adopt)

    def on_denial(self, write: Write | None = None, after: After | None = None) -> None:
        """Register what a denial ends. write: called in the transaction of the denial, in a worker thread. after:
        called on the event loop of every node, after the commit; it must not wait, and it may be called again."""
        if write is not None:
            self._writes.append(write)
        if after is not None:
            self._after.append(after)

    async def deny(self, denial: Denial) -> None:
        """Store a denial and everything that follows from it. Raises StoreError, and NotFound if the domain was
        removed."""
        await self._store.write(lambda tx: self.write(tx, denial))
        self.committed(denial)

    def write(self, tx: Tx, denial: Denial) -> None:
        """Store a denial in a transaction of the caller. After the commit, the caller calls `committed`. Raises
        NotFound if the domain was removed.

        A login may be denied twice, for example when the page and the task of the login report the same denial. Only
        the first denial within a pause is reported.
        """
        if not denial.is_checked:
            return
        audit.tenant_of(tx, denial.domain_id)
        for write in self._writes:
            write(tx, denial)
        if self.pauses.begin(tx, denial.person, denial.user):
            changes: dict[str, JSON] = {"where": [None, denial.where]}
            audit.record_in(tx, "user.not_me", denial.domain_id, f"user {denial.user}", changes, at=self._clock())
            log.warning("login_denied_by_user", domain_id=denial.domain_id, user=denial.user, where=denial.where)

    def committed(self, denial: Denial) -> None:
        """End the person's prompts and sessions on all nodes, after the commit of the denial."""
        if not denial.is_checked:
            return
        self._notices.send(_NOTICE, denial.domain_id, denial.user, denial.where)
        self._end(denial)

    def _adopt(self, values: Sequence[JSON], _age_us: int) -> None:
        """End what a denial ends, which another node has stored."""
        domain_id, user, where = values
        self._end(Denial(int(str(domain_id)), str(user), DeniedAt(str(where))))

    def _end(self, denial: Denial) -> None:
        for after in self._after:
            after(denial)
