"""What the first factor `web` cannot have is refused when it is set, from both directions."""

from collections.abc import AsyncIterator

import pytest

from sallyport.areas.domains.domain import FirstFactor, Mode
from sallyport.areas.domains.enforcement import Effect
from sallyport.areas.factors.me.host import PasswordResult
from sallyport.areas.login.first.page_passwords import PagePasswords
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.preview.rule_test import Question
from sallyport.base.errors import Conflict, Invalid
from tests.areas import Areas
from tests.areas.factors.stepups import STATION
from tests.areas.login.listen.web import WebDesk, web_desk


@pytest.fixture
async def desk(areas: Areas) -> AsyncIterator[WebDesk]:
    """Yield ann's desk. The first factor of the domain is not set yet."""
    async with web_desk(areas, is_web=False) as desk:
        yield desk


MISFITS = [
    pytest.param({"binding": "unbound"}, "binding must be code or address", id="unbound"),
    pytest.param({"factors": "oidc,passkey"}, "oidc alone", id="a passkey besides"),
    pytest.param({"factors": "oidc,bypass"}, "oidc alone", id="a bypass code besides"),
    pytest.param({"userIs": "name"}, "directory_id", id="by name"),
]


@pytest.mark.parametrize(("fields", "text"), MISFITS)
async def test_a_provider_that_does_not_fit(desk: WebDesk, fields: dict[str, object], text: str) -> None:
    """The first factor is refused with such a provider, and the provider is refused with this first factor."""
    await desk.provide(**fields)
    with pytest.raises(Conflict, match=text):
        await desk.set_web()
    await desk.provide()
    await desk.set_web()
    with pytest.raises(Conflict, match=text):
        await desk.provide(**fields)
    assert (await desk.login())[0] == 11


async def test_another_provider(desk: WebDesk) -> None:
    """Another default provider, none, and a rule that names another one are refused, from both directions."""
    providers, domain = desk.areas.providers, desk.areas.domain
    await providers.set(domain, "totp", {}, 60, beside=True)
    rule = await desk.add_rule(name="r", action="mfa_required", users=["ann"], provider="totp")
    with pytest.raises(Conflict, match=f"rule {rule} r does not fit: the provider must be own"):
        await desk.set_web()
    await desk.areas.rules.update(domain, rule, RuleFields.model_validate({"provider": "own"}))
    await desk.set_web()
    with pytest.raises(Invalid) as refused:
        await desk.areas.rules.update(domain, rule, RuleFields.model_validate({"provider": "totp"}))
    assert [each.field for each in refused.value.errors] == ["provider"]
    with pytest.raises(Conflict, match=r"named by rule|must be own"):
        await providers.set(domain, "totp", {}, 60)
    with pytest.raises(Conflict, match=r"named by rule|needs this provider"):
        await providers.delete(domain)
    await desk.areas.rules.delete(domain, [rule])
    with pytest.raises(Conflict, match="must be own"):
        await providers.set(domain, "totp", {}, 60)
    with pytest.raises(Conflict, match="needs this provider"):
        await providers.delete(domain)
    await providers.delete(domain, "totp")


async def test_without_a_provider(areas: Areas) -> None:
    """A domain without a provider cannot have this first factor, and a new domain cannot either."""
    domain = areas.domains.table.present(areas.domain)
    with pytest.raises(Conflict, match="must be own"):
        await areas.login.first_settings.set(domain, FirstFactor.WEB, {})
    with pytest.raises(Invalid) as refused:
        await areas.domains.add(areas.tenant, "branch", first_factor=FirstFactor.WEB)
    assert [each.field for each in refused.value.errors] == ["firstFactor"]


async def test_a_rule_that_allows(desk: WebDesk) -> None:
    """An enabled `allow` rule is refused, from both directions. A disabled one may stay, and cannot be enabled."""
    rules, domain = desk.areas.rules, desk.areas.domain
    rule = await desk.add_rule(name="staff", action="allow", groups=["vpn"])
    with pytest.raises(Conflict, match="allow would admit everybody"):
        await desk.set_web()
    await rules.update(domain, rule, RuleFields.model_validate({"enabled": False}))
    await desk.set_web()
    for change in ({"enabled": True}, {"enabled": True, "action": "allow"}):
        with pytest.raises(Invalid) as refused:
            await rules.update(domain, rule, RuleFields.model_validate(change))
        assert [each.field for each in refused.value.errors] == ["action"]
    with pytest.raises(Invalid):
        await desk.add_rule(name="more", action="allow", users=["ann"])
    await desk.add_rule(name="out", action="block", users=["eve"])


async def test_a_page_takes_no_password(desk: WebDesk) -> None:
    """Nobody signs in at /me with a password in such a domain, and none is tried by `domain check`."""
    await desk.set_web()
    passwords = PagePasswords(desk.areas.pipeline, desk.areas.store, desk.areas.clock)
    assert (await passwords.check(desk.areas.domain, "ann", "x")).result is PasswordResult.UNSUPPORTED
    domain = desk.areas.domains.table.present(desk.areas.domain)
    with pytest.raises(Conflict, match="no password is checked"):
        await desk.areas.login.trials.run(domain, "ann", b"x")


async def test_preview_and_rule_test(desk: WebDesk) -> None:
    """Both know that ann would be asked, and that a person without an active account is refused. The fallback does not
    matter."""
    areas = desk.areas
    await desk.set_web()
    await desk.login()
    await desk.login(user="eve")
    assert desk.graph is not None
    desk.graph.add_user("8a7b6c5d-0b1d-4c55-9d0e-6f1a2b3c4d5e", "eve@corp.example", accountEnabled=False)
    await desk.read_directory()
    impact = await areas.app.preview.service.impact(areas.domain, fallback="allow")
    assert [(each.user, each.outcome, each.reason) for each in impact.users] == [
        ("eve", Effect.REJECT, "unknown user"),
        ("ann", Effect.CHALLENGE, "second factor asked for"),
    ]
    asked = [Question(user, areas.clock(), client="Berlin", station=STATION) for user in ("ann", "eve", "nobody")]
    tested = [await areas.app.preview.rule_test.run(areas.domain, each) for each in asked]
    assert [each.decision.reason for each in tested] == ["second factor asked for", "account disabled", "unknown user"]
    assert [each.decision.applied for each in tested] == ["challenge", "reject", "reject"]
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    assert (await areas.app.preview.rule_test.run(areas.domain, asked[0])).decision.applied == "challenge"
