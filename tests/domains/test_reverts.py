"""Modes that go back by themselves, and the break-glass."""

import pytest

from sallyport.domains.domain import Domain, Fallback, Mode
from sallyport.domains.enforcement import Reverts
from tests.areas import Areas

MINUTE = 60


class Hand:
    """Monotonic seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def domain(areas: Areas) -> Domain:
    """The domain as it is now."""
    return areas.domains.table.by_id[areas.domain]


def settings(areas: Areas) -> tuple[str, str, bool]:
    """Mode, fallback, and whether it goes back by itself."""
    now = domain(areas)
    return now.mode.value, now.fallback.value, now.reverts_at is not None


async def pass_by(areas: Areas, reverts: Reverts, hand: Hand, seconds: float) -> int:
    """Advance both clocks, and revert what the deadline allows; return the number of domains."""
    areas.clock.pass_by(seconds)
    hand.now += seconds
    return await reverts.revert_due()


async def test_what_nobody_confirms_goes_back(areas: Areas) -> None:
    """Mode and fallback, when the time is over and not before; then nothing waits any more."""
    hand = Hand()
    reverts = Reverts(areas.domains, areas.clock, hand)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW, revert_after_minutes=10)
    assert settings(areas) == ("enforce", "allow", True)
    assert await pass_by(areas, reverts, hand, 0) == 0
    assert await pass_by(areas, reverts, hand, 10 * MINUTE - 1) == 0
    assert settings(areas) == ("enforce", "allow", True)
    assert await pass_by(areas, reverts, hand, 1) == 1
    assert settings(areas) == ("monitor", "deny", False)
    assert await pass_by(areas, reverts, hand, 10 * MINUTE) == 0


@pytest.mark.parametrize("confirmed", [Mode.ENFORCE, None], ids=["the same mode", "no mode"])
async def test_a_confirmed_change_stays(areas: Areas, confirmed: Mode | None) -> None:
    """A change without a time confirms; another domain still waits."""
    other = await areas.domains.add(areas.tenant, "branch")
    hand = Hand()
    reverts = Reverts(areas.domains, areas.clock, hand)
    await areas.domains.set_mode([areas.domain, other], Mode.ENFORCE, revert_after_minutes=10)
    await areas.domains.set_mode([areas.domain], confirmed)
    assert await pass_by(areas, reverts, hand, 0) == 0
    assert await pass_by(areas, reverts, hand, 10 * MINUTE) == 1
    assert settings(areas) == ("enforce", "deny", False)
    assert areas.domains.table.by_id[other].mode is Mode.MONITOR


async def test_a_repeated_request_goes_back_to_what_was_confirmed(areas: Areas) -> None:
    """A repeated request restarts the time, and does not confirm the change."""
    hand = Hand()
    reverts = Reverts(areas.domains, areas.clock, hand)
    for _ in range(3):
        await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW, revert_after_minutes=10)
        assert await pass_by(areas, reverts, hand, 6 * MINUTE) == 0
    assert await pass_by(areas, reverts, hand, 4 * MINUTE) == 1
    assert settings(areas) == ("monitor", "deny", False)


async def test_a_restart_forgets_nothing(areas: Areas) -> None:
    """The deadline is in the store: a change that expired while the service was down is reverted at the start."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    for passed, mode in ((5, "enforce"), (5, "monitor")):
        areas.clock.pass_by(passed * MINUTE)
        later = Areas(areas.store, areas.clock)
        later.domain = areas.domain
        await later.configuration.reload()
        await Reverts(later.domains, areas.clock, Hand()).revert_due()
        assert settings(later)[0] == mode


@pytest.mark.parametrize("jump", [-365 * 86_400, 365 * 86_400], ids=["back", "forward"])
async def test_a_clock_that_is_set_does_not_matter(areas: Areas, jump: int) -> None:
    """While the process runs, the monotonic clock counts."""
    hand = Hand()
    reverts = Reverts(areas.domains, areas.clock, hand)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    assert await reverts.revert_due() == 0
    areas.clock.pass_by(jump)
    hand.now += 10 * MINUTE - 1
    assert await reverts.revert_due() == 0
    hand.now += 1
    assert await reverts.revert_due() == 1
    assert settings(areas)[0] == "monitor"


async def test_a_change_outlasts_its_duration_by_no_restart(areas: Areas) -> None:
    """After a restart with a clock that was set back, the change waits for its whole duration and no longer."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    areas.clock.pass_by(-365 * 86_400)
    hand = Hand()
    reverts = Reverts(areas.domains, areas.clock, hand)
    assert await reverts.revert_due() == 0
    hand.now += 10 * MINUTE
    assert await reverts.revert_due() == 1


async def test_who_confirms_in_the_same_moment_wins(areas: Areas) -> None:
    """A revert applies only to the change that was seen: a change in between stays."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    seen = domain(areas).reverts_at
    assert seen is not None
    areas.clock.pass_by(1)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=20)
    assert not await areas.domains.revert(areas.domain, seen)
    await areas.domains.set_mode([areas.domain], None)
    assert not await areas.domains.revert(areas.domain, seen)
    assert settings(areas) == ("enforce", "deny", False)


async def test_the_break_glass_remembers_what_was(areas: Areas) -> None:
    """Mode and fallback of every domain are stored once: a second break-glass does not overwrite them. A second restore
    changes nothing, and drops no later change."""
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW)
    for fallback in (None, Fallback.DENY):
        assert await areas.domains.break_glass(fallback) == [areas.domain, branch]
        assert {each.mode for each in areas.domains.table.by_id.values()} == {Mode.MONITOR}
    later = Areas(areas.store, areas.clock)
    await later.configuration.reload()
    later.domain = areas.domain
    assert await later.domains.restore() == [areas.domain, branch]
    assert settings(later) == ("enforce", "allow", False)
    assert later.domains.table.by_id[branch].mode is Mode.MONITOR
    assert await later.domains.restore() == []


async def test_what_an_admin_set_since_stays(areas: Areas) -> None:
    """Whether to monitor or to enforce; a domain that was added since has nothing to go back to. A further break-glass
    remembers the new mode."""
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.domains.set_mode([areas.domain, branch], Mode.ENFORCE)
    await areas.domains.break_glass()
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    added = await areas.domains.add(areas.tenant, "added", mode=Mode.ENFORCE)
    assert await areas.domains.restore() == [branch]
    modes = {each.id: each.mode.value for each in areas.domains.table.by_id.values()}
    assert modes == {areas.domain: "monitor", branch: "enforce", added: "enforce"}
    await areas.domains.break_glass()
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    await areas.domains.break_glass()
    await areas.domains.restore()
    assert {each.mode.value for each in areas.domains.table.by_id.values()} == {"enforce"}


async def test_nothing_enforces_behind_the_break_glass(areas: Areas) -> None:
    """A deadline that passes during break-glass reverts the stored state, not the present one."""
    hand = Hand()
    reverts = Reverts(areas.domains, areas.clock, hand)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW)
    await areas.domains.set_mode([areas.domain], Mode.MONITOR, Fallback.DENY, revert_after_minutes=10)
    await areas.domains.break_glass()
    await reverts.revert_due()
    assert await pass_by(areas, reverts, hand, 10 * MINUTE) == 1
    assert settings(areas) == ("monitor", "deny", False)
    await areas.domains.restore()
    assert settings(areas) == ("enforce", "allow", False)
