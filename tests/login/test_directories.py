"""What directories say of whoever logs in, as the login rules see it."""

import pytest

from sallyport.domains.model import Mode
from sallyport.login.model import Reason, Verdict
from sallyport.login.rules.model import RuleFields
from tests.directory.world import group, imported, person
from tests.login.conftest import Desk
from tests.packets import pap

ANN = "uid=ann,ou=People,dc=x"


async def blocks(desk: Desk, **scope: object) -> None:
    """A rule that blocks, in a domain that enforces its rules."""
    await desk.areas.rules.add(desk.areas.domain, RuleFields.model_validate({"name": "r", "action": "block", **scope}))
    await desk.areas.domains.set_mode([desk.areas.domain], Mode.ENFORCE)


@pytest.mark.parametrize("name", ["ann", "ANN", "corp\\ann", "ann@corp", "ann.smith@corp"])
async def test_one_principal(desk: Desk, name: str) -> None:
    """A rule on a group that others are nested in holds for each of a person's names, at once and after an import."""
    areas = desk.areas
    upn = "userPrincipalName: ann.smith@corp"
    await areas.users.add(areas.domain, "ann.smith", b"hello")
    await imported(areas, person("ann", upn) + group("ops", ANN) + group("banned", "cn=ops,dc=x"))
    await blocks(desk, groups=["Banned"])
    for _ in range(2):
        assert (await desk.decided(pap(name, "hello")))[:2] == (Verdict.REJECT, Reason.BLOCKED)
    await imported(areas, group("ops"))
    assert (await desk.decided(pap(name, "hello")))[1] is not Reason.BLOCKED


async def test_units(desk: Desk) -> None:
    """A rule on an organizational unit holds for who lies in it."""
    await imported(desk.areas, person("ann", ou="Guests"))
    await blocks(desk, ous=["guests"])
    assert (await desk.decided(pap("ann", "hello")))[:2] == (Verdict.REJECT, Reason.BLOCKED)
