"""Mode changes that are reverted automatically, and break-glass."""

import pytest

from sallyport.areas.domains.domain import Domain, Fallback, Mode
from sallyport.areas.domains.enforcement import Reverts
from tests.areas import Areas

MINUTE = 60


class MonotonicClock:
    """A monotonic clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def domain(areas: Areas) -> Domain:
    """Return the current state of the domain."""
    return areas.domains.table.by_id[areas.domain]


def settings(areas: Areas) -> tuple[str, str, bool]:
    """Return the mode, the fallback, and whether a revert is pending."""
    now = domain(areas)
    return now.mode.value, now.fallback.value, now.reverts_at is not None


async def pass_by(areas: Areas, reverts: Reverts, monotonic: MonotonicClock, seconds: float) -> int:
    """Advance both clocks, revert each domain whose deadline has passed, and return the number of these domains."""
    areas.clock.pass_by(seconds)
    monotonic.now += seconds
    return await reverts.revert_due()


async def test_an_unconfirmed_change_is_reverted(areas: Areas) -> None:
    """Mode and fallback are reverted at the deadline. They are not reverted before it or a second time."""
    monotonic = MonotonicClock()
    reverts = Reverts(areas.domains, areas.cluster, areas.clock, monotonic)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW, revert_after_minutes=10)
    assert settings(areas) == ("enforce", "allow", True)
    assert await pass_by(areas, reverts, monotonic, 0) == 0
    assert await pass_by(areas, reverts, monotonic, 10 * MINUTE - 1) == 0
    assert settings(areas) == ("enforce", "allow", True)
    assert await pass_by(areas, reverts, monotonic, 1) == 1
    assert settings(areas) == ("monitor", "deny", False)
    assert await pass_by(areas, reverts, monotonic, 10 * MINUTE) == 0


@pytest.mark.parametrize("confirmed", [Mode.ENFORCE, None], ids=["the same mode", "no mode"])
async def test_a_confirmed_change_is_kept(areas: Areas, confirmed: Mode | None) -> None:
    """A change without revert_after_minutes confirms the pending change. The pending change of another domain stays
    pending.
    """
    other = await areas.domains.add(areas.tenant, "branch")
    monotonic = MonotonicClock()
    reverts = Reverts(areas.domains, areas.cluster, areas.clock, monotonic)
    await areas.domains.set_mode([areas.domain, other], Mode.ENFORCE, revert_after_minutes=10)
    await areas.domains.set_mode([areas.domain], confirmed)
    assert await pass_by(areas, reverts, monotonic, 0) == 0
    assert await pass_by(areas, reverts, monotonic, 10 * MINUTE) == 1
    assert settings(areas) == ("enforce", "deny", False)
    assert areas.domains.table.by_id[other].mode is Mode.MONITOR


async def test_a_repeated_change_is_reverted_to_the_confirmed_state(areas: Areas) -> None:
    """A repeated request moves the deadline but does not confirm the change."""
    monotonic = MonotonicClock()
    reverts = Reverts(areas.domains, areas.cluster, areas.clock, monotonic)
    for _ in range(3):
        await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW, revert_after_minutes=10)
        assert await pass_by(areas, reverts, monotonic, 6 * MINUTE) == 0
    assert await pass_by(areas, reverts, monotonic, 4 * MINUTE) == 1
    assert settings(areas) == ("monitor", "deny", False)


async def test_a_deadline_survives_a_restart(areas: Areas) -> None:
    """The deadline is stored. A change whose deadline passed while the service was stopped is reverted at the start."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    for passed, mode in ((5, "enforce"), (5, "monitor")):
        areas.clock.pass_by(passed * MINUTE)
        later = Areas(areas.store, areas.clock)
        later.domain = areas.domain
        await later.configuration.reload()
        await Reverts(later.domains, later.cluster, areas.clock, MonotonicClock()).revert_due()
        assert settings(later)[0] == mode


@pytest.mark.parametrize("jump", [-365 * 86_400, 365 * 86_400], ids=["back", "forward"])
async def test_setting_the_system_clock_does_not_move_the_deadline(areas: Areas, jump: int) -> None:
    """While the process runs, deadlines follow the monotonic clock, so setting the system clock does not move them."""
    monotonic = MonotonicClock()
    reverts = Reverts(areas.domains, areas.cluster, areas.clock, monotonic)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    assert await reverts.revert_due() == 0
    areas.clock.pass_by(jump)
    monotonic.now += 10 * MINUTE - 1
    assert await reverts.revert_due() == 0
    monotonic.now += 1
    assert await reverts.revert_due() == 1
    assert settings(areas)[0] == "monitor"


async def test_a_clock_set_back_before_a_restart_does_not_extend_a_change(areas: Areas) -> None:
    """If the clock is set back before a restart, the change lasts for its full duration after the restart and no
    longer.
    """
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    areas.clock.pass_by(-365 * 86_400)
    monotonic = MonotonicClock()
    reverts = Reverts(areas.domains, areas.cluster, areas.clock, monotonic)
    assert await reverts.revert_due() == 0
    monotonic.now += 10 * MINUTE
    assert await reverts.revert_due() == 1


async def test_a_concurrent_confirmation_prevents_the_revert(areas: Areas) -> None:
    """A revert applies only to its own change. It does not revert a later change or confirmation."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    seen = domain(areas).reverts_at
    assert seen is not None
    areas.clock.pass_by(1)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=20)
    assert not await areas.domains.revert(areas.domain, seen)
    await areas.domains.set_mode([areas.domain], None)
    assert not await areas.domains.revert(areas.domain, seen)
    assert settings(areas) == ("enforce", "deny", False)


async def test_break_glass_stores_the_previous_state_once(areas: Areas) -> None:
    """A second break-glass does not overwrite the stored mode and fallback. A second restore changes nothing."""
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


async def test_a_restore_keeps_modes_set_during_break_glass(areas: Areas) -> None:
    """A restore keeps modes that an admin has set during break-glass, and domains that were added during it. The next
    break-glass stores the new modes.
    """
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


async def test_a_confirmation_during_break_glass_keeps_the_stored_mode(areas: Areas) -> None:
    """A confirmation during break-glass applies to the stored mode and fallback. The domain monitors until the restore,
    which brings back the confirmed mode.
    """
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=10)
    await areas.domains.break_glass()
    await areas.domains.set_mode([areas.domain], None, Fallback.ALLOW)
    domain = areas.domains.table.present(areas.domain)
    assert (domain.mode, domain.glass_mode, domain.reverts_at) == (Mode.MONITOR, Mode.ENFORCE, None)
    assert await areas.domains.restore() == [areas.domain]
    assert settings(areas) == ("enforce", "allow", False)


async def test_a_deadline_during_break_glass_reverts_the_stored_state(areas: Areas) -> None:
    """If a deadline passes during break-glass, the domain stays in monitor mode. The revert changes the stored state,
    which the restore brings back.
    """
    monotonic = MonotonicClock()
    reverts = Reverts(areas.domains, areas.cluster, areas.clock, monotonic)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW)
    await areas.domains.set_mode([areas.domain], Mode.MONITOR, Fallback.DENY, revert_after_minutes=10)
    await areas.domains.break_glass()
    await reverts.revert_due()
    assert await pass_by(areas, reverts, monotonic, 10 * MINUTE) == 1
    assert settings(areas) == ("monitor", "deny", False)
    await areas.domains.restore()
    assert settings(areas) == ("enforce", "allow", False)
