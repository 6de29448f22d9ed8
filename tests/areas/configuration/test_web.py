"""`sallyport apply` with the first factor `web`, which depends on the provider `own` and on rules."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.base.errors import Conflict, Invalid
from tests.areas import Areas, SetClock
from tests.areas.configuration.test_apply import engine_of, export, items, signs
from tests.areas.factors.people import running_site

OWN = {
    "domain": "vpn",
    "provider": "own",
    "factors": "oidc",
    "issuer": "https://login.example.com",
    "clientId": "sallyport",
    "clientSecret": {"hex": b"of the app".hex()},
    "userClaim": "oid",
    "userIs": "directory_id",
}
RULE = {"domain": "vpn", "name": "all", "action": "mfa_required"}
Folder = list[tuple[str, Mapping[str, object]]]


def folder(factor: str = "web", rule: Mapping[str, object] = RULE, own: Mapping[str, object] = OWN) -> Folder:
    """Return a folder with a domain, its first factor, its provider and a rule."""
    named = {"domain": "vpn", "firstFactor": factor}
    return [("first_factor", named), ("rule", rule), ("provider", own), ("domain", {"domainName": "vpn"})]


@pytest.fixture
async def site(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas of a service with pages of people."""
    async with running_site(tmp_path, clock) as areas:
        yield areas


async def test_a_new_domain_has_the_first_factor_web(site: Areas) -> None:
    """The domain, its provider and its first factor are added together, and the export changes nothing."""
    await engine_of(site).run(site.tenant, items(folder()))
    assert site.domains.named(site.tenant, "vpn").first_factor is FirstFactor.WEB
    assert await signs(site, folder()) == []
    assert await signs(site, await export(site)) == []


async def test_what_does_not_fit_is_refused_and_nothing_is_added(site: Areas) -> None:
    """A provider that the first factor `web` cannot use is refused after all changes, in whatever order they are."""
    with pytest.raises(Conflict, match="oidc alone"):
        await engine_of(site).run(site.tenant, items(folder(own={**OWN, "factors": "oidc,passkey"})))
    assert await signs(site, folder()) == ["+ domain vpn", "+ provider vpn", "+ first_factor vpn", "+ rule vpn"]


async def test_the_first_factor_and_the_provider_change_together(site: Areas) -> None:
    """A domain leaves the first factor `web` together with its provider, and gets both again."""
    other = folder("local", own={"domain": "vpn", "provider": "totp"})
    for each in (folder(), other, folder()):
        await engine_of(site).run(site.tenant, items(each), prune="all")
        assert await signs(site, each) == []


async def test_a_provider_of_a_new_domain_is_checked_before_anything_changes(areas: Areas) -> None:
    """A service without pages of people refuses the provider `own` in the plan, also for a new domain."""
    with pytest.raises(Conflict, match="pages of people are off"):
        await engine_of(areas).plan(areas.tenant, items(folder()))


async def test_a_rule_may_demand_what_the_provider_of_the_folder_can(site: Areas) -> None:
    """The strength of a rule is compared with the provider of the same folder."""
    rule = {**RULE, "strength": "two_channels"}
    await engine_of(site).run(site.tenant, items(folder("local", own={"domain": "vpn", "provider": "totp"})))
    with pytest.raises(Invalid, match="strength"):
        await engine_of(site).run(site.tenant, items([("rule", rule)]))
    passkeys = {"domain": "vpn", "provider": "own", "factors": "passkey"}
    await engine_of(site).run(site.tenant, items(folder("local", rule, passkeys)), prune="all")
