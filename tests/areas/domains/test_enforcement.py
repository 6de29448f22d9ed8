"""Changes of the mode, and their impact on users and devices."""

from dataclasses import dataclass

import pytest

from sallyport.areas.domains.bodies import Counts, DeviceImpact, Impact, Survey, Tally, UserImpact
from sallyport.areas.domains.domain import Effect, Fallback, Mode
from sallyport.areas.domains.enforcement import IMPACT_UNKNOWN, Enforcement, NotClean, ProviderFails, Switch
from sallyport.areas.mfa.service import Checked
from sallyport.base.errors import StoreError
from tests.areas import Areas


@dataclass
class FixedCheck:
    """A ProviderChecks with a fixed result. problem: the fault of the provider, empty text if there is none, or None if
    the domain has no provider.
    """

    problem: str | None = ""

    def has(self, domain_id: int) -> bool:
        return self.problem is not None

    async def check_all(self, domain_id: int) -> list[Checked]:
        return [] if self.problem is None else [Checked("duo", self.problem)]


class FixedImpact:
    """An ImpactPreview with a fixed impact.

    denied: the number of denied users and devices, or None if the store takes too long. unknown: the number of users
    whose enrolment is unknown.
    """

    def __init__(self, denied: int | None, unknown: int = 0) -> None:
        self.denied = denied
        self.unknown = unknown
        self.surveys = 0
        self.asked: list[str | None] = []

    async def survey(self, domain_id: int, *, days: int = 30, again: bool = False) -> Survey:
        """Count the surveys."""
        self.surveys += 1
        return Survey(users=3, left=0)

    async def impact(self, domain_id: int, *, days: int = 30, fallback: str | None = None) -> Impact:
        """Return the same impact for every domain."""
        self.asked.append(fallback)
        if self.denied is None:
            raise StoreError("too long")
        users = [
            UserImpact(user="ann", outcome=Effect.REJECT, reason="not enrolled", logins=2, lastSeen=""),
            UserImpact(user="bob", outcome=Effect.CHALLENGE, reason="", logins=2, lastSeen=""),
            UserImpact(user="eve", outcome=Effect.REJECT, reason="unknown user", logins=2, lastSeen="", gone=True),
        ]
        devices = [DeviceImpact(device_id=7, device_name="vpn", outcome=Effect.REJECT, reason="blocked by rule")]
        counts = Counts(
            users=Tally(reject=2, challenge=1, unknown=self.unknown), devices=Tally(reject=1), denied=self.denied
        )
        return Impact(
            users=users, devices=devices, counts=counts, logins=6, rules=[], since="a", until="b", policyVersion=1
        )


@pytest.mark.parametrize(
    ("denied", "mode", "known"),
    [(3, Mode.ENFORCE, True), (3, Mode.MONITOR, False), (None, Mode.ENFORCE, False)],
    ids=["enforce", "monitor", "impact unknown"],
)
async def test_enforcing_returns_its_impact(areas: Areas, denied: int | None, mode: Mode, known: bool) -> None:
    """Only a change to enforce mode returns an impact. If the impact cannot be computed, the change is still applied,
    with a warning.
    """
    enforcement = Enforcement(areas.domains, FixedImpact(denied), FixedCheck())
    switched = await enforcement.switch(areas.domain, Switch(mode, Fallback.ALLOW))
    assert areas.domains.table.by_id[areas.domain].mode is switched.domain.mode is mode
    assert (switched.impact is not None) is known
    assert (IMPACT_UNKNOWN in switched.warnings) is (denied is None)


async def test_a_clean_switch_denies_no_users(areas: Areas) -> None:
    """If users or devices would be denied, the domain stays unchanged. The refusal lists them, but not users that are
    rejected in both modes. The impact is computed with the new fallback.
    """
    previews = FixedImpact(2)
    enforcement = Enforcement(areas.domains, previews, FixedCheck())
    with pytest.raises(NotClean) as refused:
        await enforcement.switch(areas.domain, Switch(Mode.ENFORCE, Fallback.ALLOW, require_clean=True))
    domain = areas.domains.table.by_id[areas.domain]
    assert (domain.mode, domain.fallback, previews.asked) == (Mode.MONITOR, Fallback.DENY, ["allow"])
    assert refused.value.status == 409
    assert refused.value.details == {
        "users": [{"user": "ann", "outcome": "reject", "reason": "not enrolled", "logins": 2, "lastSeen": ""}],
        "devices": [{"device_id": 7, "device_name": "vpn", "outcome": "reject", "reason": "blocked by rule"}],
    }
    previews.denied = 0
    switched = await enforcement.switch(areas.domain, Switch(Mode.ENFORCE, require_clean=True))
    assert (switched.domain.mode, switched.impact is not None, len(previews.asked)) == (Mode.ENFORCE, True, 2)


async def test_an_unknown_impact_is_not_clean(areas: Areas) -> None:
    """With require_clean, the change is refused if the impact cannot be computed."""
    with pytest.raises(StoreError):
        await Enforcement(areas.domains, FixedImpact(None), FixedCheck()).switch(
            areas.domain, Switch(Mode.ENFORCE, require_clean=True)
        )
    assert areas.domains.table.by_id[areas.domain].mode is Mode.MONITOR


@pytest.mark.parametrize(
    ("check", "message"),
    [(FixedCheck("no such host"), "does not work: no such host"), (FixedCheck(None), "has no MFA provider")],
    ids=["does not work", "none"],
)
async def test_a_failing_provider_is_not_clean(areas: Areas, check: FixedCheck, message: str) -> None:
    """The provider is checked before the enrolments are looked up. If it fails, the domain stays unchanged."""
    previews = FixedImpact(0)
    with pytest.raises(ProviderFails, match=message):
        await Enforcement(areas.domains, previews, check).switch(areas.domain, Switch(Mode.ENFORCE, require_clean=True))
    assert areas.domains.table.by_id[areas.domain].mode is Mode.MONITOR
    assert previews.surveys == 0


async def test_an_unknown_enrolment_is_not_clean(areas: Areas) -> None:
    """The enrolments are looked up first. If some stay unknown, the change is refused, unless accept_unknown is set."""
    previews = FixedImpact(0, unknown=2)
    enforcement = Enforcement(areas.domains, previews, FixedCheck())
    with pytest.raises(NotClean, match=r"^the enrolment of 2 users is unknown$"):
        await enforcement.switch(areas.domain, Switch(Mode.ENFORCE, require_clean=True))
    assert (areas.domains.table.by_id[areas.domain].mode, previews.surveys) == (Mode.MONITOR, 1)
    await enforcement.switch(areas.domain, Switch(Mode.ENFORCE, require_clean=True, accept_unknown=True))
    assert areas.domains.table.by_id[areas.domain].mode is Mode.ENFORCE
