"""A login over the wire that a person confirms by a sign-in with the company's identity provider."""

from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.provider import Strength
from sallyport.base.errors import Forbidden
from sallyport.radius.attributes import REPLY_MESSAGE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE
from tests.areas.factors.stepups import LAPTOP, SITE, STATION
from tests.areas.login.listen.second import outcomes
from tests.areas.login.listen.test_second_factor_own import Desk, desk
from tests.console.provider import CLIENT, SECRET, providing

__all__ = ["desk"]


async def test_a_sign_in_at_the_company_admits(desk: Desk) -> None:
    """The stored configuration of the domain leads to its provider. Another account confirms nothing; the right one
    shows the digits, with which the login continues. A removed provider is offered to nobody."""
    areas = desk.wire.areas
    sign_ins, domain = areas.app.factors.sign_ins, areas.domain
    sign_ins._site = SITE
    async with providing(lambda: areas.clock() // 1_000_000) as company:
        await desk.provide(factors="oidc", issuer=company.issuer, clientId=CLIENT, clientSecret=SECRET)
        assert f"redirect URI {SITE}/mfa/openid/{domain}" in (await areas.providers.check(domain)).found
        challenge, found = await desk.login()
        assert (challenge, b"/mfa/" in found[REPLY_MESSAGE]) == (ACCESS_CHALLENGE, True)
        shown = await desk.open()
        assert shown is not None and shown.factors == ("oidc",)
        for user in ("eve", "ann"):
            company.claims = {"preferred_username": user, "auth_time": areas.clock() // 1_000_000}
            back = await company.visit(await sign_ins.address(shown, LAPTOP))
            answer = dict(parse_qsl(urlsplit(back).query))
            try:
                strength = await sign_ins.prove(shown, str(domain), LAPTOP, answer, STATION)
            except Forbidden:
                assert user == "eve"
        proof = await desk.stepups.prove(shown.id, LAPTOP, "oidc", strength, STATION)
        assert (proof.accepted, strength) == (True, Strength.TWO_CHANNELS)
        accept, _ = await desk.type(proof.digits, found)
        assert accept == ACCESS_ACCEPT
        assert (await outcomes(areas))[-1][0] == "accept"
    await areas.providers.delete(domain)
    assert not await sign_ins.has(Person(domain, "ann"))
    assert not await sign_ins.has(replace(shown.person, name="eve"))
