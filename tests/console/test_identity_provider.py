"""The sign-in through an identity provider: what is accepted, what is refused, and when a session ends."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.signin.person import Person
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import NotFound
from sallyport.service.commands import commands
from sallyport.settings.identity_provider import IdentityProvider
from sallyport.settings.values import ANYWHERE
from sallyport.shell.command import entries
from tests.areas import stored
from tests.console.provider import CLIENT, SECRET, Provider, new_key, providing
from tests.console.visitor import Site, Visitor, text_of

OUTSIDE = "192.0.2.9"
LEAVE = "/sign-in/with/company"
OPERATOR = {"group": "netops", "role": "operator", "org": 1, "tenant": 1}
AUDITOR = {"group": "audit", "role": "auditor", "org": 1, "tenant": 1}
ROOT = {"group": "root", "role": "installation"}
Configure = Callable[..., dict[str, IdentityProvider]]


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[Provider]:
    """Yield a provider with the clock of the site."""
    async with providing(lambda: site.clock.now // SECOND) as provider:
        yield provider


@pytest.fixture
def configured(site: Site, provider: Provider, tmp_path: Path) -> Configure:
    """Return a function that puts the provider into the configuration, with these entries of `roles`. It has done this
    for the groups netops, audit and root."""
    secret = tmp_path / "client-secret"
    secret.write_text(f"{SECRET}\n")

    def configure(*roles: object, **fields: object) -> dict[str, IdentityProvider]:
        values = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret_file": secret, "roles": roles}
        found = {"company": IdentityProvider.model_validate({"title": "Company account", **values, **fields})}
        site.areas.open_id.use(found)
        return found

    configure(OPERATOR, AUDITOR, ROOT)
    return configure


def path_of(address: str) -> str:
    """Return the path and the query of an address."""
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


async def leave(visitor: Visitor, next_path: str = "/account") -> str:
    """Begin a sign-in, and return the address at the provider."""
    answer = await visitor.get(f"{LEAVE}?next={next_path}")
    assert answer.status_code == 303, text_of(answer)
    return answer.headers["location"]


async def sign_in(visitor: Visitor, provider: Provider) -> httpx.Response:
    """Sign in through the provider, and return the last answer of the console."""
    return await visitor.get(path_of(await provider.visit(await leave(visitor))))


async def test_a_person_signs_in(site: Site, provider: Provider, configured: Configure) -> None:
    """The person gets the role of the group, comes to the wanted page, and the audit trail names the
    person with the subject."""
    async with site.visitor() as visitor:
        page = await visitor.get("/sign-in?next=/account")
        assert 'href="/sign-in/with/company?next=/account"' in page.text
        assert "Sign in with Company account" in text_of(page)
        answer = await sign_in(visitor, provider)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        shown = text_of(await visitor.get("/account"))
        assert "Ann Example" in shown
        assert "operator" in shown
    assert await site.audited("console.sign-in") == ["identity 1 Ann Example (4f1c)"]


async def test_the_request_has_pkce_and_a_fixed_redirect_uri(
    site: Site, provider: Provider, configured: Configure
) -> None:
    """The redirect URI is a path of the service, whatever the link says, and no secret is in the address. Each sign-in
    has values of its own."""
    async with site.visitor() as visitor:
        address = await leave(visitor, "//evil.example/")
        cookie = visitor.http.cookies["__Host-sallyport_provider"]
    asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert asked["redirect_uri"] == "http://127.0.0.1:8080/sign-in/with/company/done"
    assert asked["code_challenge_method"] == "S256"
    async with site.visitor() as other:
        again = parse_qs(urlsplit(await leave(other)).query)
    of_two = [asked[name] for name in ("state", "nonce", "code_challenge")]
    of_two += [again[name][0] for name in ("state", "nonce", "code_challenge")]
    assert len(set(of_two)) == 6
    assert "evil" not in address + cookie
    assert SECRET not in address
    assert cookie.partition(".")[0] not in address


async def test_the_cookie_of_a_sign_in_is_short_lived(site: Site, provider: Provider, configured: Configure) -> None:
    """It has strict flags, ends after ten minutes in the browser, and the service does not accept it afterwards."""
    async with site.visitor() as visitor:
        answer = await visitor.get(LEAVE)
        (cookie,) = answer.headers.get_list("set-cookie")
        flags = {each.strip().lower() for each in cookie.split(";")[1:]}
        assert {"httponly", "samesite=lax", "secure", "path=/", "max-age=600"} <= flags
        back = path_of(await provider.visit(answer.headers["location"]))
        site.clock.pass_by(601)
        assert (await visitor.get(back)).status_code == 403
        assert not await visitor.is_signed_in()


async def test_another_node_may_finish_a_sign_in(site: Site, provider: Provider, configured: Configure) -> None:
    """The service keeps nothing of a sign-in, and the clock of the other node may be behind."""
    async with site.visitor() as visitor:
        back = path_of(await provider.visit(await leave(visitor)))
        configured(OPERATOR)  # forgets what is known of the provider
        site.clock.pass_by(-30)
        assert (await visitor.get(back)).status_code == 303


async def test_a_long_path_is_left_out(site: Site, provider: Provider, configured: Configure) -> None:
    """A browser would drop a cookie of more than 4096 octets, so the person comes to the home page."""
    async with site.visitor() as visitor:
        address = await leave(visitor, "/logins%3Fsearch%3D" + "%C3%A4" * 900)
        assert len(visitor.http.cookies["__Host-sallyport_provider"]) < 4000
        answer = await visitor.get(path_of(await provider.visit(address)))
        assert answer.headers["location"] == "/"


HOSTILE: dict[str, dict[str, object]] = {
    "wrong nonce": {"claims": {"nonce": "another"}},
    "no nonce": {"claims": {"nonce": None}},
    "wrong issuer": {"claims": {"iss": "https://evil.example"}},
    "wrong audience": {"claims": {"aud": "another"}},
    "no audience": {"claims": {"aud": None}},
    "two audiences without azp": {"claims": {"aud": [CLIENT, "another"]}},
    "for another party": {"claims": {"aud": [CLIENT, "another"], "azp": "another"}},
    "another azp": {"claims": {"azp": "another"}},
    "expired": {"claims": {"exp": 1_767_225_600 - 60}},
    "no expiry": {"claims": {"exp": None}},
    "expiry is text": {"claims": {"exp": "9999999999"}},
    "expiry is no number": {"claims": {"exp": float("nan")}},
    "no issue time": {"claims": {"iat": None}},
    "issue time is text": {"claims": {"iat": "1767225600"}},
    "old": {"claims": {"iat": 1_767_225_600 - 700}},
    "of the future": {"claims": {"iat": 1_767_225_600 + 100}},
    "not valid yet": {"claims": {"nbf": 1_767_225_600 + 100}},
    "no subject": {"claims": {"sub": ""}},
    "subject is a number": {"claims": {"sub": 7}},
    "subject is too long": {"claims": {"sub": "x" * 256}},
    "subject is not printable": {"claims": {"sub": "ann\n"}},
    "foreign key": {"signer": new_key()},
    "foreign key in the header": {"signer": new_key(), "header": {"jwk": new_key().as_dict(private=False)}},
    "unsigned": {"signer": b"", "header": {"alg": "none"}},
    "unsigned as ES256": {"signer": b""},
    "signed with the client secret": {"signer": SECRET.encode(), "header": {"alg": "HS256"}},
    "unknown critical header": {"header": {"crit": ["x"], "x": 1}},
    "groups are an object": {"claims": {"groups": {"netops": True}}},
    "too many groups": {"claims": {"groups": ["netops"] * 2001}},
    "groups elsewhere": {"claims": {"groups": None, "_claim_names": {"groups": "src1"}}},
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_id_token_is_refused(
    site: Site, provider: Provider, configured: Configure, hostile: dict[str, object]
) -> None:
    """A token that is not exactly for this sign-in opens no session. The page offers the other ways to sign in."""
    vars(provider).update(hostile)
    async with site.visitor() as visitor:
        answer = await sign_in(visitor, provider)
        assert answer.status_code == 401
        assert "is not valid" in text_of(answer)
        assert 'name="token"' in answer.text
        assert not await visitor.is_signed_in()
    assert await site.audited("console.refuse") == ["identity provider company"]


@pytest.mark.parametrize(
    "claims",
    [{"aud": [CLIENT, "another"], "azp": CLIENT}, {"iat": 1_767_225_600 + 50}, {"nbf": 1_767_225_600 + 50}],
    ids=["two audiences with azp", "clock 50 s ahead", "valid in 50 s"],
)
async def test_an_unusual_id_token_is_accepted(
    site: Site, provider: Provider, configured: Configure, claims: dict[str, object]
) -> None:
    """Several audiences with azp are valid, and clocks may differ by a minute."""
    provider.claims = claims
    async with site.visitor() as visitor:
        assert (await sign_in(visitor, provider)).status_code == 303


async def test_the_public_key_is_no_shared_secret(site: Site, provider: Provider, configured: Configure) -> None:
    """A token with HS256 under the public key of the provider is refused."""
    provider.signer, provider.header = provider.key.as_pem(private=False), {"alg": "HS256"}
    async with site.visitor() as visitor:
        assert (await sign_in(visitor, provider)).status_code == 401


async def test_a_finished_sign_in_cannot_be_repeated(site: Site, provider: Provider, configured: Configure) -> None:
    """The address with the code opens no second session in the same browser, and the provider refuses the code."""
    async with site.visitor() as visitor:
        back = path_of(await provider.visit(await leave(visitor)))
        kept = visitor.http.cookies["__Host-sallyport_provider"]
        assert (await visitor.get(back)).status_code == 303
        assert (await visitor.get(back)).status_code == 403
        visitor.http.cookies.set("__Host-sallyport_provider", kept, domain="console.example")
        again = await visitor.get(back)
        assert again.status_code == 401
        assert "does not accept this sign-in any more" in text_of(again)


async def test_a_code_of_another_sign_in_is_refused(site: Site, provider: Provider, configured: Configure) -> None:
    """An attacker cannot put a stolen code into an own sign-in: the code verifier belongs to another browser."""
    async with site.visitor() as victim, site.visitor() as attacker:
        stolen = httpx.URL(await provider.visit(await leave(victim))).params["code"]
        own = httpx.URL(await provider.visit(await leave(attacker)))
        answer = await attacker.get(path_of(str(own.copy_set_param("code", stolen))))
        assert answer.status_code == 401
        assert not await attacker.is_signed_in()


@pytest.mark.parametrize("change", ["state", "no state", "browser", "provider", "issuer"])
async def test_an_answer_for_another_sign_in_is_refused(
    site: Site, provider: Provider, configured: Configure, change: str
) -> None:
    """Another site cannot sign a person in to an account of the attacker, and a provider cannot answer for another."""
    async with site.visitor() as visitor, site.visitor() as other:
        back = httpx.URL(await provider.visit(await leave(visitor)))
        chosen, status = visitor, 403
        if change == "state":
            back = back.copy_set_param("state", "another")
        elif change == "no state":
            back = back.copy_remove_param("state")
        elif change == "browser":
            await leave(other)
            chosen = other
        elif change == "provider":
            back = back.copy_with(path="/sign-in/with/another/done")
        else:
            back, status = back.copy_set_param("iss", "https://evil.example"), 401
        assert (await chosen.get(path_of(str(back)))).status_code == status
        assert not await chosen.is_signed_in()
    assert not any(code for code in provider.codes.values() if not code), "the provider got the code"


async def test_a_refusal_of_the_provider_is_shown(site: Site, provider: Provider, configured: Configure) -> None:
    """A person who is refused at the provider, or cancels there, comes back to the sign-in."""
    async with site.visitor() as visitor:
        back = httpx.URL(await provider.visit(await leave(visitor)))
        back = back.copy_remove_param("code").copy_set_param("error", "access_denied")
        answer = await visitor.get(path_of(str(back)))
        assert (answer.status_code, "has refused the sign-in" in text_of(answer)) == (401, True)


@pytest.mark.parametrize(
    "behaviour", [Behaviour.FAIL, Behaviour.BROKEN_OFF, Behaviour.RUBBISH, Behaviour.EMPTY, Behaviour.REDIRECT]
)
async def test_a_provider_that_is_down_leaves_the_other_ways(
    site: Site, provider: Provider, configured: Configure, behaviour: Behaviour
) -> None:
    """The page says so, and the local administrator signs in on it."""
    seed = await site.administrator("root")
    assert provider.server
    provider.server.behave(behaviour)
    async with site.visitor() as visitor:
        answer = await visitor.get(LEAVE)
        assert answer.status_code == 503
        assert "Company account cannot be used now" in text_of(answer)
        assert 'name="password"' in answer.text
        assert (await visitor.sign_in_as("root", site.code(seed))).status_code == 303


async def test_a_provider_that_fails_during_the_sign_in(site: Site, provider: Provider, configured: Configure) -> None:
    """The page says so, and the sign-in works again a few seconds after the provider does."""
    async with site.visitor() as visitor:
        back = path_of(await provider.visit(await leave(visitor)))
        assert provider.server
        provider.server.behave(Behaviour.FAIL)
        assert (await visitor.get(back)).status_code == 503
        provider.server.behave(Behaviour.APPROVE)
        site.clock.pass_by(6)
        assert (await sign_in(visitor, provider)).status_code == 303


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://192.0.2.1/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
        {"code_challenge_methods_supported": ["plain"]},
    ],
    ids=["another issuer", "no TLS", "no address", "no keys", "no S256"],
)
async def test_an_unusable_discovery_document_is_refused(
    site: Site, provider: Provider, configured: Configure, document: dict[str, object]
) -> None:
    """Nobody is led to a provider whose discovery document does not fit the configuration."""
    provider.document = document
    async with site.visitor() as visitor:
        assert (await visitor.get(LEAVE)).status_code == 503


async def test_a_provider_may_change_its_key(site: Site, provider: Provider, configured: Configure) -> None:
    """A token with a new key leads to another request for the keys, but not within 30 seconds."""
    async with site.visitor() as visitor:
        assert (await sign_in(visitor, provider)).status_code == 303
        provider.key = new_key("second")
        assert (await sign_in(visitor, provider)).status_code == 401
        site.clock.pass_by(31)
        assert (await sign_in(visitor, provider)).status_code == 303


async def test_a_person_without_a_role_is_refused(site: Site, provider: Provider, configured: Configure) -> None:
    """Somebody whose groups have no role gets no session, and the audit trail names the person."""
    provider.groups = ["staff"]
    async with site.visitor() as visitor:
        answer = await sign_in(visitor, provider)
        assert (answer.status_code, "has no role here" in text_of(answer)) == (403, True)
        assert not await visitor.is_signed_in()
    assert await site.audited("console.refuse") == ["identity of company: Ann Example (4f1c)"]


async def test_a_role_in_a_missing_tenant_is_none(site: Site, provider: Provider, configured: Configure) -> None:
    """A configuration that names a tenant that does not exist gives no role, and makes no tenant."""
    configured({**OPERATOR, "org": 8})
    async with site.visitor() as visitor:
        assert (await sign_in(visitor, provider)).status_code == 403


async def test_an_auditor_sees_and_cannot_change(site: Site, provider: Provider, configured: Configure) -> None:
    """The role of the group applies to pages and forms, as with a token."""
    provider.groups = ["staff", "audit"]
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        assert "auditor" in text_of(await visitor.get("/logins"))
        assert (await visitor.get("/senders")).status_code == 403
        assert (await visitor.get("/tenants")).status_code == 403
        number = (await site.areas.console_sessions.everything())[0].id
        answer = await visitor.send("/tenants", {"tenant": "1"}, page=f"/account/sessions/{number}/end")
        assert answer.status_code == 403


async def test_a_group_makes_an_installation_administrator(
    site: Site, provider: Provider, configured: Configure
) -> None:
    """The person sees what belongs to no tenant. The first entry of the mapping that fits applies."""
    provider.groups = ["root"]
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        assert (await visitor.get("/senders")).status_code == 200
        provider.groups = ["root", "netops"]
        await sign_in(visitor, provider)
        assert (await visitor.get("/senders")).status_code == 403


async def test_an_account_is_the_subject(site: Site, provider: Provider, configured: Configure) -> None:
    """A person with the name of another is another person, and a person with a new name stays the same."""
    for subject, name in (("4f1c", "Ann Example"), ("9d2e", "Ann Example"), ("4f1c", "Ann Married\n")):
        provider.subject, provider.name = subject, name
        async with site.visitor() as visitor:
            await sign_in(visitor, provider)
    assert await site.audited("console.sign-in") == [
        "identity 1 Ann Example (4f1c)", "identity 2 Ann Example (9d2e)", "identity 1 Ann Married (4f1c)"
    ]  # fmt: skip


async def test_a_changed_configuration_ends_sessions_at_once(
    site: Site, provider: Provider, configured: Configure
) -> None:
    """A reload with another role, without the group, or without the provider ends the session with its next request.
    Other changes do not."""
    for roles in ((AUDITOR,), ({**OPERATOR, "role": "admin"},), ({**OPERATOR, "tenant": 2},)):
        configured(OPERATOR)
        async with site.visitor() as visitor:
            await sign_in(visitor, provider)
            configured(OPERATOR, AUDITOR)
            assert await visitor.is_signed_in()
            changed = {"identity_providers": configured(*roles), "egress": ANYWHERE}
            settings = site.areas.settings.model_copy(update=changed)
            site.areas.app.apply(settings)
            assert not await visitor.is_signed_in()
    configured(OPERATOR)
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        site.areas.open_id.use({})
        assert not await visitor.is_signed_in()
        assert "identity provider" not in text_of(await visitor.get("/sign-in"))


async def test_a_lost_group_ends_all_sessions_of_the_person(
    site: Site, provider: Provider, configured: Configure
) -> None:
    """When a person without the group signs in again, the earlier sessions end too. Those of other people stay."""
    async with site.visitor() as first, site.visitor() as second, site.visitor() as other, site.visitor() as holder:
        await sign_in(first, provider)
        provider.subject = "9d2e"
        await sign_in(other, provider)
        await holder.sign_in(await site.token())
        provider.subject, provider.groups = "4f1c", []
        assert (await sign_in(second, provider)).status_code == 403
        assert not await first.is_signed_in()
        assert await other.is_signed_in()
        assert await holder.is_signed_in()


async def test_a_subject_belongs_to_its_provider(site: Site, provider: Provider, configured: Configure) -> None:
    """A person of another provider with the same subject, and without a role, does not end the sessions of the
    person."""
    async with (
        providing(lambda: site.clock.now // SECOND) as elsewhere,
        site.visitor() as first,
        site.visitor() as other,
    ):
        second = configured(OPERATOR)["company"].model_copy(update={"issuer": elsewhere.issuer})
        site.areas.open_id.use({**configured(OPERATOR), "second": second})
        await sign_in(first, provider)
        elsewhere.groups = []
        back = await elsewhere.visit((await other.get("/sign-in/with/second")).headers["location"])
        assert (await other.get(path_of(back))).status_code == 403
        assert await first.is_signed_in()


async def test_sessions_have_their_own_people(site: Site, provider: Provider, configured: Configure) -> None:
    """Each session is listed once, with its own person, although there are people of all kinds."""
    seed = await site.administrator("root")
    async with site.visitor() as ann, site.visitor() as ben, site.visitor() as holder, site.visitor() as root:
        await sign_in(ann, provider)
        provider.subject, provider.name, provider.groups = "9d2e", "Ben", ["audit"]
        await sign_in(ben, provider)
        await holder.sign_in(await site.token())
        await root.sign_in_as("root", site.code(seed))
        listed = entries(await commands(site.areas.app).ready("admin.sessions", {})())
    assert [(each["kind"], each["name"], each["role"]) for each in listed] == [
        ("administrator", "root", "installation"),
        ("token", "admin", "admin"),
        ("identity", "Ben", "auditor"),
        ("identity", "Ann Example", "operator"),
    ]


async def test_a_provider_without_a_title_has_its_name(site: Site, provider: Provider, configured: Configure) -> None:
    """The pages of the sign-in and of the sign-out show the name of the provider in the settings."""
    configured(OPERATOR, title="")
    async with site.visitor() as visitor:
        assert "Sign in with company" in text_of(await visitor.get("/sign-in"))
        await sign_in(visitor, provider)
        assert "company" in text_of(await visitor.send("/sign-out", page="/account"))


async def test_a_group_may_have_any_name(site: Site, provider: Provider, configured: Configure) -> None:
    """A group whose name cannot be stored as it is does not keep the person out."""
    provider.groups = ["\ud800", "\0", "Zürich", "netops"]
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        assert await visitor.is_signed_in()


async def test_a_sign_out_leads_to_the_provider(site: Site, provider: Provider, configured: Configure) -> None:
    """The session ends, and the page leads to the end_session_endpoint with the ID token, which is sealed in the
    store."""
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        page = await visitor.send("/sign-out", page="/account")
        assert page.status_code == 200
        assert f'content="0;url={provider.issuer}/end?id_token_hint=ey' in page.text
        assert "post_logout_redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2Fsign-in" in page.text
        assert not await visitor.is_signed_in()
        await sign_in(visitor, provider)
    assert await site.audited("console.sign-out") == ["identity 1 Ann Example"]
    assert b"eyJ" not in stored(site.areas.store)


@pytest.mark.parametrize("is_down", [True, False], ids=["down", "without end_session_endpoint"])
async def test_a_sign_out_works_without_the_provider(
    site: Site, provider: Provider, configured: Configure, is_down: bool
) -> None:
    """A person signs out here, whatever the provider does."""
    provider.document = {} if is_down else {"end_session_endpoint": None}
    assert provider.server
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        if is_down:
            configured(OPERATOR)  # forgets what is known of the provider
            provider.server.behave(Behaviour.FAIL)
        answer = await visitor.send("/sign-out", page="/account")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


async def test_a_sign_out_works_after_the_removal_of_the_provider(
    site: Site, provider: Provider, configured: Configure
) -> None:
    """A provider that is removed while the person signs out is not asked."""
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        (session,) = await site.areas.console_sessions.everything()
        site.areas.open_id.use({})
        assert await site.areas.console_sessions.sign_out(Person(session)) == ""
        assert await site.areas.console_sessions.everything() == []


async def test_an_address_that_fails_often_has_to_wait(site: Site, provider: Provider, configured: Configure) -> None:
    """After ten refused sign-ins, the provider is not asked any more for this address."""
    provider.claims = {"aud": "another"}
    async with site.visitor(OUTSIDE) as visitor, site.visitor("192.0.2.10") as other:
        for _ in range(10):
            assert (await sign_in(visitor, provider)).status_code == 401
        assert (await visitor.get(LEAVE)).status_code == 429
        provider.claims = {}
        assert (await sign_in(other, provider)).status_code == 303


async def test_a_sign_in_in_clear_is_refused(site: Site, provider: Provider, configured: Configure) -> None:
    """Over the network without TLS, nobody is led to the provider."""
    async with site.visitor(OUTSIDE, "http://console.example") as visitor:
        assert (await visitor.get(LEAVE)).status_code == 403
        assert "only over TLS" in text_of(await visitor.get("/sign-in"))


async def test_an_unknown_provider_is_not_found(site: Site) -> None:
    """A link to a provider that is not configured shows the sign-in."""
    async with site.visitor() as visitor:
        answer = await visitor.get("/sign-in/with/another")
        assert (answer.status_code, 'name="token"' in answer.text) == (404, True)


async def test_a_wrong_client_secret_is_the_fault_of_the_configuration(
    site: Site, provider: Provider, configured: Configure, tmp_path: Path
) -> None:
    """The person learns that the provider cannot be used. It does not count as a failed attempt."""
    for text in ("another", "", None):
        place = tmp_path / f"secret-{text}"
        if text is not None:
            place.write_text(text)
        configured(OPERATOR, client_secret_file=place)
        async with site.visitor() as visitor:
            assert (await sign_in(visitor, provider)).status_code == 503
    assert await site.audited("console.refuse") == []


async def test_a_person_is_listed_and_removed(site: Site, provider: Provider, configured: Configure) -> None:
    """The command line lists who has signed in. A removed person is signed out at once, and is a new one afterwards."""
    run = commands(site.areas.app)
    async with site.visitor() as visitor:
        await sign_in(visitor, provider)
        (found,) = entries(await run.ready("admin.identities", {})())
        began = iso(site.clock())
        assert found == {
            "id": found["id"],
            "name": "Ann Example",
            "role": "operator",
            "org": 1,
            "tenant": 1,
            "issuer": provider.issuer,
            "subject": "4f1c",
            "created": began,
            "signed_in": began,
        }
        site.clock.pass_by(60)
        provider.groups = ["root"]
        await sign_in(visitor, provider)
        (known,) = entries(await run.ready("admin.identities", {})())
        as_root = {"role": "installation", "org": None, "tenant": None, "signed_in": iso(site.clock())}
        assert known == {**found, **as_root}
        await run.ready("admin.forget", {"identity": found["id"]})()
        assert not await visitor.is_signed_in()
        assert await run.ready("admin.identities", {})() == []
        with pytest.raises(NotFound, match="`admin identities` lists them"):
            await run.ready("admin.forget", {"identity": found["id"]})()
        provider.groups = ["netops"]
        await sign_in(visitor, provider)
        assert await visitor.is_signed_in()
        (again,) = entries(await run.ready("admin.identities", {})())
        assert again["id"] != found["id"]
        await run.ready("admin.forget", {"identity": again["id"]})()
    sql = "select target, tenant_id from audit_trail where action = 'identity.remove' order by id"
    assert await site.areas.store.read(lambda tx: tx.rows(sql)) == [
        (f"identity {found['id']} Ann Example (4f1c)", 0),
        (f"identity {again['id']} Ann Example (4f1c)", site.areas.tenant),
    ]
