"""What follows when a person says of a login: "This is not me"."""

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from sallyport.areas.factors.denials import Denial, Denials, DeniedAt
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.nodes.notices import Apply, Notices
from sallyport.store.model import Tx
from tests.areas import Areas


class Wire(Notices):
    """The notices of a node, which reach a second node at once, also in their stored form."""

    is_shared = True

    def __init__(self) -> None:
        self.sent: list[Sequence[JSON]] = []
        self.apply: list[Apply] = []

    def send(self, kind: str, *values: JSON) -> None:
        self.sent.append((kind, *values))
        for apply in self.apply:
            apply(values, 0)

    def receive(self, kind: str, apply: Apply) -> None:
        pass


class OtherEnd(Wire):
    """The notices of the second node. It only receives."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def receive(self, kind: str, apply: Apply) -> None:
        self._wire.apply.append(apply)


def denials_of(areas: Areas, notices: Notices | None = None) -> Denials:
    """Return the denials of a node."""
    return Denials(areas.store, notices or Wire(), areas.app.factors.pauses, areas.clock)


async def actions(areas: Areas) -> list[tuple[str, str]]:
    """Return (action, target) of the audit trail about denials."""
    sql = "select action, target from audit_trail where action like 'user.not%' order by id"
    return [(str(action), str(target)) for action, target in await areas.store.read(lambda tx: tx.rows(sql))]


async def test_a_denial_is_stored_with_what_it_ends(areas: Areas) -> None:
    """Each registered function is called: the writes in the transaction, the others after it. The audit trail and the
    log name the person."""
    denials, seen = denials_of(areas), list[tuple[str, object]]()
    denials.on_denial(lambda _tx, denial: seen.append(("write", denial.person)))
    denials.on_denial(after=lambda denial: seen.append(("after", denial.user)))
    with capture_logs() as logs:
        await denials.deny(Denial(areas.domain, "Ann", DeniedAt.PAGE))
    assert seen == [("write", (areas.domain, "ann")), ("after", "Ann")]
    assert await actions(areas) == [("user.not_me", "user Ann")]
    assert [(each["event"], each["user"], each["where"]) for each in logs] == [
        ("login_denied_by_user", "Ann", "step-up page")
    ]


async def test_a_denial_that_fails_ends_nothing(areas: Areas) -> None:
    """If one of the writes fails, none of them is stored, and no function is called after it."""
    denials, seen = denials_of(areas), list[str]()

    def fail(_tx: Tx, _denial: Denial) -> None:
        raise NotFound("no such row")

    denials.on_denial(fail, lambda denial: seen.append(denial.user))
    with pytest.raises(NotFound):
        await denials.deny(Denial(areas.domain, "ann", DeniedAt.PROVIDER))
    assert (await actions(areas), seen) == ([], [])


async def test_without_a_checked_password_a_denial_ends_nothing_of_the_person(areas: Areas) -> None:
    """Anybody who knows a name can start a login that checks no password. To deny it must not harm the person."""
    denials, seen = denials_of(areas), list[str]()
    denials.on_denial(lambda _tx, denial: seen.append(denial.user), lambda denial: seen.append(denial.user))
    await denials.deny(Denial(areas.domain, "ann", DeniedAt.PAGE, is_checked=False))
    assert (await actions(areas), seen) == ([], [])


async def test_other_nodes_end_it_too(areas: Areas) -> None:
    """A notice ends what the other nodes hold in memory. They store nothing again."""
    wire, seen = Wire(), list[object]()
    here, there = denials_of(areas, wire), denials_of(areas, OtherEnd(wire))
    there.on_denial(lambda _tx, denial: seen.append("stored again"), seen.append)
    await here.deny(Denial(areas.domain, "Ännchen", DeniedAt.OWN_PAGES))
    assert seen == [Denial(areas.domain, "Ännchen", DeniedAt.OWN_PAGES)]


async def test_a_denial_in_a_removed_domain(areas: Areas) -> None:
    """The domain may be removed while the person looks at the prompt."""
    with pytest.raises(NotFound):
        await denials_of(areas).deny(Denial(999, "ann", DeniedAt.PAGE))
