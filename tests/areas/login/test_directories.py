"""Tests of login rules that name the users, groups and units of imported directories."""

import pytest

from sallyport.areas.domains.domain import Domain, Mode
from sallyport.areas.login.login import Reason, Verdict
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import Action
from tests.areas.directory.world import group, imported, person
from tests.areas.login.conftest import FakeListener
from tests.areas.login.first.conftest import book, listed
from tests.packets import pap

__all__ = ["book", "listed"]

ANN = "uid=ann,ou=People,dc=x"


async def blocks(listener: FakeListener, **scope: object) -> None:
    """Add a rule that blocks, and set the domain to enforce."""
    await listener.areas.rules.add(
        listener.areas.domain, RuleFields.model_validate({"name": "r", "action": "block", **scope})
    )
    await listener.areas.domains.set_mode([listener.areas.domain], Mode.ENFORCE)


@pytest.mark.parametrize("name", ["ann", "ANN", "corp\\ann", "ann@corp", "ann.smith@corp"])
async def test_one_principal(listener: FakeListener, name: str) -> None:
    """A rule for a group applies to the members of its nested groups, under each name of a member.

    A later import changes this at once.
    """
    areas = listener.areas
    upn = "userPrincipalName: ann.smith@corp"
    await areas.add_user(areas.domain, "ann.smith", b"hello")
    await imported(areas, person("ann", upn) + group("ops", ANN) + group("banned", "cn=ops,dc=x"))
    await blocks(listener, groups=["Banned"])
    for _ in range(2):
        assert (await listener.decided(pap(name, "hello")))[:2] == (Verdict.REJECT, Reason.BLOCKED)
    await imported(areas, group("ops"))
    assert (await listener.decided(pap(name, "hello")))[1] is not Reason.BLOCKED


@pytest.mark.parametrize("named", ["Ann", "ann.smith"])
async def test_a_rule_on_a_user_holds_for_all_names(listener: FakeListener, listed: Domain, named: str) -> None:
    """A rule for a user applies to every name of that user, whichever name the rule has and whichever the user types.

    It does so in the preview too. Other users are not affected.
    """
    areas, spelled = listener.areas, ("ann", "corp\\ANN", "ann.smith@corp", "Ann.Smith")
    await imported(areas, person("Ann", "userPrincipalName: ann.smith@corp") + person("ben"))
    await areas.rules.add(areas.domain, RuleFields(name="r", action=Action.BLOCK, users=[named]))
    for name in (*spelled, "ben"):
        login = await listener.ready(pap(name, "s3cret"))
        assert login.answer.decision.applied is Verdict.ACCEPT
        areas.journal.add(login)
    areas.journal.flush()
    await areas.journal.drained()
    impact = await areas.preview.impact(areas.domain)
    blocked = {user.user for user in impact.users if user.reason == Reason.BLOCKED}
    assert {name.casefold() for name in blocked} == {"ann", "ann.smith"}
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    for name in spelled:
        assert (await listener.decided(pap(name, "s3cret")))[:2] == (Verdict.REJECT, Reason.BLOCKED)
    assert (await listener.decided(pap("ben", "s3cret")))[1] is Reason.NO_PROVIDER


async def test_another_one_s_name_is_no_exemption(listener: FakeListener, listed: Domain) -> None:
    """A user whose principal name begins with another user's login name does not get the exemption of that user."""
    areas = listener.areas
    await imported(areas, person("ann", "userPrincipalName: ben@corp") + person("ben"))
    await areas.rules.add(areas.domain, RuleFields(name="r", action=Action.ALLOW, users=["ben"]))
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    assert (await listener.decided(pap("ben", "s3cret")))[:2] == (Verdict.ACCEPT, Reason.NONE)
    for name in ("ann", "ann@corp"):
        assert (await listener.decided(pap(name, "s3cret")))[:2] == (Verdict.REJECT, Reason.NO_PROVIDER)


async def test_units(listener: FakeListener) -> None:
    """A rule for an organizational unit applies to the users in it."""
    await imported(listener.areas, person("ann", ou="Guests"))
    await blocks(listener, ous=["guests"])
    assert (await listener.decided(pap("ann", "hello")))[:2] == (Verdict.REJECT, Reason.BLOCKED)
