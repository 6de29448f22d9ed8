"""Proofs of logins by a sign-in with the company's identity provider, and attacks on them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.provider import Strength
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Forbidden, Unauthenticated
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.outgoing.openid.client import ProviderDown
from tests.areas import Areas
from tests.areas.factors.sign_ins import OID, Bench
from tests.areas.factors.stepups import LAPTOP, SITE, STRANGER, node
from tests.console.provider import providing


@pytest.fixture
async def bench(areas: Areas) -> AsyncIterator[Bench]:
    """Yield a bench with a provider."""
    async with providing(lambda: areas.clock() // SECOND) as provider:
        yield Bench(areas, provider, node(areas, factors=("oidc",)))


async def test_a_person_proves_a_login_by_signing_in(bench: Bench) -> None:
    """The provider is asked to let the person sign in now, and gets a redirect URI of this domain alone."""
    stepup = await bench.stepup()
    address = await bench.sign_ins.address(stepup, LAPTOP)
    asked = dict(parse_qsl(urlsplit(address).query))
    assert (asked["prompt"], asked["max_age"], asked["login_hint"]) == ("login", "0", "ann")
    assert (asked["scope"], asked["code_challenge_method"]) == ("openid profile", "S256")
    assert asked["redirect_uri"] == f"{SITE}/mfa/openid/{bench.areas.domain}"
    assert await bench.prove(stepup, await bench.returned(stepup)) is Strength.TWO_CHANNELS
    assert await bench.sign_ins.has(Person(bench.areas.domain, "ann"))


@pytest.mark.parametrize(
    ("claims", "fields"),
    [
        ({"preferred_username": "eve"}, {}),
        ({"preferred_username": None}, {}),
        ({"preferred_username": ""}, {}),
        ({"preferred_username": ["ann"]}, {}),
        ({"preferred_username": "ann\0"}, {}),
        ({"preferred_username": "ann@example.com"}, {}),
        ({"preferred_username": "ann@evil.example"}, {"userSuffix": "@example.com"}),
        ({"preferred_username": "ann"}, {"userSuffix": "@example.com"}),
        ({"preferred_username": "@example.com"}, {"userSuffix": "@example.com"}),
        ({"preferred_username": "ann", "oid": "another"}, {"userClaim": "oid", "userIs": "directory_id"}),
        ({"preferred_username": "ann", "oid": "ann"}, {"userClaim": "oid", "userIs": "directory_id"}),
    ],
    ids=str,
)
async def test_another_user_of_the_provider_proves_nothing(
    bench: Bench, claims: dict[str, object], fields: dict[str, object]
) -> None:
    """A colleague with an account at the same provider cannot confirm ann's login."""
    bench.configure(**fields)
    bench.accounts[OID] = "ann"
    bench.signed_in(**{"user": claims.pop("preferred_username"), **claims})
    stepup = await bench.stepup()
    with pytest.raises(Forbidden, match="another user"):
        await bench.prove(stepup, await bench.returned(stepup))


@pytest.mark.parametrize(
    ("claims", "fields"),
    [
        ({"user": "Ann"}, {}),
        ({"user": "ann@example.com"}, {"userSuffix": "@Example.com"}),
        ({"user": "eve", "upn": "ann"}, {"userClaim": "upn"}),
        ({"user": "renamed", "oid": OID.upper()}, {"userClaim": "oid", "userIs": "directory_id"}),
    ],
    ids=str,
)
async def test_the_claim_of_the_user_is_a_setting(
    bench: Bench, claims: dict[str, object], fields: dict[str, object]
) -> None:
    """The claim may have the name of the user, the name and an end, or the object id of a cloud directory."""
    bench.configure(**fields)
    bench.accounts[OID] = "ann"
    bench.signed_in(**claims)
    stepup = await bench.stepup()
    assert await bench.prove(stepup, await bench.returned(stepup)) is Strength.TWO_CHANNELS


@pytest.mark.parametrize("at", [None, True, "now", -61, -86_400])
async def test_a_person_must_have_signed_in_now(bench: Bench, at: int | None) -> None:
    """A provider may ignore `prompt` and `max_age`, and let a browser with an old session through."""
    bench.signed_in(auth_time=bench.now + at if type(at) is int else at)
    stepup = await bench.stepup()
    with pytest.raises(Unauthenticated):
        await bench.prove(stepup, await bench.returned(stepup))


async def test_the_time_of_the_sign_in_may_be_optional(bench: Bench) -> None:
    """Then the provider is not asked for it. A time that it sends all the same is checked."""
    bench.configure(authTime="optional")
    stepup = await bench.stepup()
    bench.signed_in(auth_time=None)
    answer = await bench.returned(stepup)
    assert "max_age" not in (await bench.sign_ins.address(stepup, LAPTOP))
    assert await bench.prove(stepup, answer) is Strength.TWO_CHANNELS
    bench.signed_in(auth_time=bench.now - 61)
    with pytest.raises(Unauthenticated):
        await bench.prove(stepup, await bench.returned(stepup))


@pytest.mark.parametrize(
    ("fields", "claims", "strength"),
    [
        ({"amr": "mfa,hwk"}, {"amr": ["pwd", "mfa"]}, Strength.TWO_CHANNELS),
        ({"amr": "mfa"}, {"amr": ["pwd"]}, None),
        ({"amr": "mfa"}, {}, None),
        ({"amr": "mfa"}, {"amr": {"mfa": 1}}, None),
        ({"acr": "silver,gold"}, {"acr": "gold"}, Strength.TWO_CHANNELS),
        ({"acr": "gold"}, {"acr": "0"}, None),
        ({"acr": "gold"}, {}, None),
        ({"resistantAmr": "hwk, fido"}, {"amr": ["fido"]}, Strength.PHISHING_RESISTANT),
        ({"resistantAmr": "hwk"}, {"amr": ["pwd", "otp"]}, Strength.TWO_CHANNELS),
        ({"resistantAmr": "hwk"}, {}, Strength.TWO_CHANNELS),
    ],
    ids=str,
)
async def test_a_domain_may_demand_methods(
    bench: Bench, fields: dict[str, object], claims: dict[str, object], strength: Strength | None
) -> None:
    """`amr` and `acr` are demanded as configured. Only a named method makes a proof phishing-resistant."""
    bench.configure(**fields)
    bench.signed_in(**claims)
    stepup = await bench.stepup()
    answer = await bench.returned(stepup)
    if strength is not None:
        assert await bench.prove(stepup, answer) is strength
        return
    with pytest.raises(Unauthenticated):
        await bench.prove(stepup, answer)


async def test_a_sign_in_belongs_to_one_browser(bench: Bench) -> None:
    """A victim who follows the attacker's link to the provider signs in, but the code comes back in another browser.
    The code is not even redeemed."""
    stepup = await bench.stepup()
    answer = await bench.returned(stepup, STRANGER)
    with pytest.raises(Forbidden, match="another browser"):
        await bench.prove(stepup, answer, LAPTOP)
    assert await bench.prove(stepup, answer, STRANGER)


async def test_a_sign_in_belongs_to_one_login(bench: Bench) -> None:
    """Neither the state nor the code of one login proves another, also not of the same person and browser."""
    one, other = await bench.stepup(1), await bench.stepup(2)
    answers = await bench.returned(one), await bench.returned(other)
    with pytest.raises(Forbidden):
        await bench.prove(other, answers[0])
    with pytest.raises(Unauthenticated):  # PKCE: the provider refuses the code
        await bench.prove(other, {**answers[1], "code": answers[0]["code"]})


@pytest.mark.parametrize("change", ["stepup", "time", "random", "mac", "empty", "long", "parts", "unicode"])
async def test_a_changed_state_is_refused(bench: Bench, change: str) -> None:
    """The keyed hash covers all of it."""
    stepup, other = await bench.stepup(1), await bench.stepup(2)
    answer = await bench.returned(stepup)
    parts = answer["state"].split(".")
    changed = {
        "stepup": ".".join([other.id, *parts[1:]]),
        "time": ".".join([parts[0], str(int(parts[1]) - 1), *parts[2:]]),
        "random": ".".join([*parts[:2], "A" * len(parts[2]), parts[3]]),
        "mac": ".".join([*parts[:3], "0" * len(parts[3])]),
        "empty": "",
        "long": answer["state"] + "0" * 100_000,
        "parts": answer["state"] + ".",
        "unicode": ".".join([*parts[:3], "é" * 64]),
    }[change]
    for shown in (stepup, other):
        with pytest.raises(Forbidden):
            await bench.prove(shown, {**answer, "state": changed})


async def test_a_code_of_one_domain_is_never_sent_to_the_provider_of_another(bench: Bench) -> None:
    """Mix-up: the provider of a hostile tenant leads the browser on to an honest provider, with the state of the
    hostile domain. The honest provider returns the code to the redirect URI of its own domain, where this state is
    refused. So the hostile provider does not get the code."""
    hostile = bench.areas.domain + 1
    async with providing(lambda: bench.now) as evil:
        bench.configure(hostile, issuer=evil.issuer)
        own, theirs = await bench.stepup(1), await bench.stepup(2)
        asked = await bench.sign_ins.address(replace(theirs, domain_id=hostile), LAPTOP)
        state = dict(parse_qsl(urlsplit(asked).query))["state"]
        answer = await bench.returned(own)
        assert answer.pop("iss") == bench.provider.issuer
        assert evil.server is not None
        requests = evil.server.requests
        for shown in (own, replace(theirs, domain_id=hostile)):
            with pytest.raises(Forbidden):
                await bench.prove(shown, {**answer, "state": state})
        assert evil.server.requests == requests


@pytest.mark.parametrize("issuer", ["https://other.example", ""])
async def test_the_issuer_is_checked_where_it_is_sent(bench: Bench, issuer: str) -> None:
    """RFC 9207. A provider that does not send it is accepted."""
    stepup = await bench.stepup()
    answer = await bench.returned(stepup)
    with pytest.raises(Unauthenticated):
        await bench.prove(stepup, {**answer, "iss": issuer})
    del answer["iss"]
    assert await bench.prove(stepup, answer)


@pytest.mark.parametrize("claims", [{"nonce": "another"}, {"nonce": None}, {"aud": "another"}, {"iss": "https://e.x"}])
async def test_a_token_of_another_sign_in_is_refused(bench: Bench, claims: dict[str, object]) -> None:
    """The nonce, the audience and the issuer must be those of this sign-in."""
    bench.signed_in(**claims)
    stepup = await bench.stepup()
    with pytest.raises(Unauthenticated):
        await bench.prove(stepup, await bench.returned(stepup))


async def test_a_replayed_redirect_is_refused(bench: Bench) -> None:
    """The provider accepts a code once."""
    stepup = await bench.stepup()
    answer = await bench.returned(stepup)
    await bench.prove(stepup, answer)
    with pytest.raises(Unauthenticated):
        await bench.prove(stepup, answer)


async def test_a_provider_may_change_while_a_person_signs_in(bench: Bench) -> None:
    """The sign-in began at another provider, so it is refused. Without a provider, the factor is not offered."""
    stepup = await bench.stepup()
    answer = await bench.returned(stepup)
    async with providing(lambda: bench.now) as other:
        bench.configure(issuer=other.issuer)
        with pytest.raises(Forbidden):
            await bench.prove(stepup, answer)
        assert not other.codes
    bench.configure(factors="passkey")
    assert not await bench.sign_ins.has(Person(bench.areas.domain, "ann"))
    for call in (bench.prove(stepup, answer), bench.sign_ins.address(stepup, LAPTOP)):
        with pytest.raises(Conflict):
            await call


async def test_a_person_who_cancels_at_the_provider_may_try_again(bench: Bench) -> None:
    """The error says that the provider has refused the sign-in."""
    stepup = await bench.stepup()
    answer = await bench.returned(stepup)
    with pytest.raises(Unauthenticated, match="refused the sign-in"):
        await bench.prove(stepup, {"state": answer["state"], "error": "access_denied"})
    assert await bench.prove(stepup, answer)


async def test_the_rules_of_egress_apply_to_the_provider(bench: Bench) -> None:
    """A tenant cannot reach a server inside by an issuer."""
    bench.http = HttpFactory()
    stepup = await bench.stepup()
    with pytest.raises(ProviderError, match=r"^identity provider: address not allowed$"):
        await bench.sign_ins.check(bench.areas.domain)
    with pytest.raises(ProviderDown) as error:
        await bench.sign_ins.address(stepup, LAPTOP)
    assert "127.0.0.1" not in str(error.value)


async def test_a_check_names_the_redirect_uri(bench: Bench) -> None:
    """The provider must allow it. A provider that cannot be used is named with the reason."""
    assert f"{SITE}/mfa/openid/{bench.areas.domain}" in await bench.sign_ins.check(bench.areas.domain)
    bench.configure(issuer=f"{bench.provider.issuer}/other")
    with pytest.raises(ProviderError, match="discovery document"):
        await bench.sign_ins.check(bench.areas.domain)
