"""Domains in the console: the list, the page of a domain, its settings, its factors, and its removal."""

from sallyport.areas.mfa.providers import available
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.console.pages.factors import FIELDS, OPTIONAL
from sallyport.web.scope import Role
from tests.areas.factors.stepups import with_pages
from tests.console.visitor import Site, Visitor, text_of


async def test_the_list_leads_to_the_page_of_a_domain(site: Site, admin: Visitor) -> None:
    """The page shows the mode, both factors and the settings, and the next step before the domain can enforce."""
    listed = await admin.get("/domains")
    assert f'href="/domains/{site.areas.domain}"' in listed.text
    page = text_of(await admin.get(f"/domains/{site.areas.domain}"))
    assert "Mode: monitor" in page
    assert "Second factor: none" in page
    assert "Set a provider before you enforce" in page
    assert "First factor: local" in page


async def test_a_domain_is_added_and_changed(site: Site, admin: Visitor) -> None:
    """The form of the settings has all realms: one that it lacks is removed."""
    added = await admin.send("/domains/add", {"name": "branch", "realms": "branch.example, b.example"})
    where = added.headers["location"]
    assert "is added" in text_of(await admin.get(where))
    changed = {"name": "office", "realms": "b.example, c.example", "issuer": "Acme", "disconnect": "yes"}
    assert (await admin.send(f"{where}/settings", changed)).status_code == 303
    (domain,) = [each for each in site.areas.domains.of_tenant(site.areas.tenant) if each.name == "office"]
    assert set(domain.realms) == {"branch", "b.example", "c.example"}  # the former name stays a realm
    assert (domain.issuer, domain.disconnect_on_revoke) == ("Acme", True)


async def test_a_refused_form_says_why_and_keeps_its_values(admin: Visitor) -> None:
    """The name of a domain is unique in its tenant."""
    answer = await admin.send("/domains/add", {"name": "corp", "directory": "head office"})
    assert answer.status_code == 409
    assert 'value="head office"' in answer.text
    assert 'role="alert"' in answer.text


async def test_a_removal_lists_what_is_deleted(site: Site, admin: Visitor) -> None:
    """The page before the removal names each kind of rows with its number, and deletes nothing itself."""
    await site.areas.add_user(site.areas.domain, "alice", b"password of alice")
    page = text_of(await admin.get(f"/domains/{site.areas.domain}/remove"))
    assert "1 endpoint user" in page
    assert "There is no undo" in page
    assert (await admin.get(f"/domains/{site.areas.domain}")).status_code == 200
    assert (await admin.send(f"/domains/{site.areas.domain}/remove")).headers["location"] == "/domains"
    assert (await admin.get(f"/domains/{site.areas.domain}")).status_code == 404


async def test_a_domain_that_is_in_use_says_why_it_stays(site: Site, admin: Visitor) -> None:
    """The default domain of a RADIUS client cannot be removed, and the page names the client."""
    await site.areas.client(name="vpn", domain_ids=(site.areas.domain,))
    page = await admin.get(f"/domains/{site.areas.domain}/remove")
    assert "vpn" in text_of(page)
    assert "<button class" not in page.text.partition("<main")[2]


async def test_the_first_factor_is_tested_on_the_page(site: Site, admin: Visitor) -> None:
    """The answer says whether a password is right, with the steps, and does not repeat the password."""
    await site.areas.add_user(site.areas.domain, "alice", b"password of alice")
    page, form = f"/domains/{site.areas.domain}", f"/domains/{site.areas.domain}/first-factor"
    assert f'action="{form}"' in (await admin.get(page)).text
    right = await admin.send(form, {"user": "alice", "password": "password of alice"}, page=page)
    assert "The password is right" in text_of(right)
    wrong = await admin.send(form, {"user": "alice", "password": "another one"}, page=page)
    assert "wrong password" in text_of(wrong)
    assert "another one" not in wrong.text


async def test_a_first_factor_is_set_and_then_tested(site: Site, admin: Visitor) -> None:
    """The fields depend on the kind in the address. Its secrets are never shown, and a wrong field is named."""
    at = f"/domains/{site.areas.domain}/first-factor"
    fields = {
        "chosen": "ldap", "servers": "ldaps://dc1.example.com\nldaps://dc2.example.com", "baseDN": "dc=example,dc=com",
        "bindDN": "cn=reader", "bindPassword": "secret of reader", "timeoutSeconds": "7", "codeDigits": "8",
    }  # fmt: skip
    wrong = await admin.send(f"{at}/set", {**fields, "servers": "http://x"}, page=f"{at}/set?kind=ldap")
    assert wrong.status_code == 400
    done = await admin.send(f"{at}/set", fields, page=f"{at}/set?kind=ldap")
    assert done.headers["location"] == at
    shown = await admin.get(at)
    assert "is ldap, from the next login on. Test it now." in text_of(shown)
    assert "ldaps://dc1.example.com, ldaps://dc2.example.com" in text_of(shown)
    form = await admin.get(f"{at}/set")
    assert 'value="dc=example,dc=com"' in form.text and "ldaps://dc2.example.com</textarea>" in form.text
    assert "secret of reader" not in shown.text + form.text
    assert (await admin.send(f"{at}/set", {"chosen": "local"}, page=f"{at}/set?kind=local")).status_code == 303
    again = await admin.send(f"{at}/set", {"chosen": "ldap", "stored": "yes"}, page=f"{at}/set?kind=ldap")
    assert again.status_code == 303
    assert "Time limit in seconds 7" in text_of(await admin.get(at))


async def test_upstream_servers_are_set(site: Site, admin: Visitor) -> None:
    """The form has room for one more server than there are, and a reason beside the field of a wrong server."""
    at = f"/domains/{site.areas.domain}/first-factor/set"
    fields = {
        "chosen": "radius", "host0": "192.0.2.7", "secret0": "s" * 16, "host1": "192.0.2.8", "port1": "1645",
        "secret1": "t" * 16, "stripRealm": "yes", "requireMessageAuthenticator": "yes",
    }  # fmt: skip
    page = f"{at}?kind=radius"
    wrong = await admin.send(page, {**fields, "port1": "99999"})
    assert wrong.status_code == 400
    assert 'id="port1-wrong"' in wrong.text
    assert (await admin.send(page, fields)).status_code == 303
    form = await admin.get(at)
    assert 'value="192.0.2.8"' in form.text and "Server 3" in form.text
    answer = await admin.get(f"/domains/{site.areas.domain}/first-factor")
    assert "192.0.2.7:1812, 192.0.2.8:1645" in text_of(answer)
    assert "s" * 16 not in answer.text + form.text


async def test_the_first_factor_web_says_what_it_needs(site: Site, admin: Visitor) -> None:
    """The form warns that everybody can start a login. Without its provider, the page says what is missing."""
    at = f"/domains/{site.areas.domain}/first-factor/set"
    page = f"{at}?kind=web"
    assert "everybody who knows a name can start a login" in text_of(await admin.get(page))
    refused = await admin.send(at, {"chosen": "web"}, page=page)
    assert (refused.status_code, "the provider must be own" in text_of(refused)) == (409, True)


async def test_a_provider_is_set_checked_and_removed(site: Site, admin: Visitor) -> None:
    """The fields depend on the provider that is chosen in the address. Its secret is never shown again."""
    at = f"/domains/{site.areas.domain}"
    fields = {"chosen": "webhook", "url": "https://mfa.example/hook", "secret": "s" * 32, "timeout": "30"}
    page = f"{at}/provider?provider=webhook"
    assert (await admin.send(f"{at}/provider", {**fields, "url": "nonsense"}, page=page)).status_code == 400
    assert (await admin.send(f"{at}/provider", fields, page=page)).status_code == 303
    shown = await admin.get(at)
    assert "Second factor: webhook" in text_of(shown)
    assert "https://mfa.example/hook" in text_of(shown)
    assert "s" * 32 not in shown.text + (await admin.get(f"{at}/provider")).text
    assert "sent. Check" in text_of(await admin.get(f"{at}/provider/check"))
    assert "The keys and settings of webhook are deleted" in text_of(await admin.get(f"{at}/provider/remove"))
    await admin.send(f"{at}/provider/remove")
    assert "Second factor: none" in text_of(await admin.get(at))


async def test_totp_works_when_it_is_checked(site: Site, admin: Visitor) -> None:
    """The provider totp has no fields, and needs no other service."""
    at = f"/domains/{site.areas.domain}"
    await admin.send(f"{at}/provider", {"chosen": "totp", "timeout": "60"})
    assert 'class="notice" role="status">totp' in (await admin.send(f"{at}/provider/check")).text


async def test_an_unbound_factor_is_a_warning(site: Site, admin: Visitor) -> None:
    """The form has the bindings to choose from. The page of the domain warns if nothing binds a proof to its login."""
    at = f"/domains/{site.areas.domain}"
    with_pages(site.areas)
    form = (await admin.get(f"{at}/provider?provider=own")).text
    assert '<option value="address">address</option>' in form and "Passkeys need the pages of people" in form
    assert 'value="passkey,totp,bypass"' in form and 'value="preferred_username"' in form  # the defaults
    fields = {"chosen": "own", "factors": "passkey", "digits": "6", "timeout": "60", "pageByMail": "False"}
    for binding, is_warned in (("code", False), ("unbound", True)):
        page = f"{at}/provider?provider=own"
        assert (await admin.send(f"{at}/provider", {**fields, "binding": binding}, page=page)).status_code == 303
        assert ("The binding is unbound" in text_of(await admin.get(at))) == is_warned
    found = site.areas.domains.table.present(site.areas.domain)
    assert any("unbound" in each for each in site.areas.domains.warnings(found))


async def test_a_provider_beside_the_default_one(site: Site, admin: Visitor) -> None:
    """The page of the domain lists the further providers with the rules that name them. A named provider is not
    removed."""
    at = f"/domains/{site.areas.domain}"
    await admin.send(f"{at}/provider", {"chosen": "totp", "timeout": "60"})
    form = await admin.get(f"{at}/provider?beside=yes")
    assert "Only login rules that name this provider ask it" in text_of(form)
    assert '<option value="totp"' not in form.text
    hook = {"chosen": "webhook", "url": "https://hook.example.com/x", "secret": "s" * 32, "timeout": "60"}
    beside = f"{at}/provider?beside=yes&provider=webhook"
    assert (await admin.send(beside, {**hook, "url": "nonsense"}, page=beside)).status_code == 400
    assert (await admin.send(beside, hook, page=beside)).status_code == 303
    page = text_of(await admin.get(at))
    assert "Second factor: authenticator app (TOTP)" in page
    assert "Second factors for login rules" in page
    assert "webhook Named by no rule yet" in page
    assert "https://hook.example.com/x" in (await admin.get(beside)).text
    assert "webhook is asked whether" in text_of(await admin.get(f"{at}/provider/check?provider=webhook"))
    fields = {"name": "admins", "action": "mfa_required", "users": ["ann"], "provider": "webhook"}
    rule = await site.areas.rules.add(site.areas.domain, RuleFields.model_validate(fields))
    assert f"Named by rule {rule} admins" in text_of(await admin.get(at))
    removal = await admin.get(f"{at}/provider/remove?provider=webhook")
    assert "Change them first" in text_of(removal)
    assert "<button" not in removal.text.partition("<main")[2]
    await site.areas.rules.delete(site.areas.domain, [rule])
    remove = f"{at}/provider/remove?provider=webhook"
    assert (await admin.send(remove, page=remove)).status_code == 303
    page = text_of(await admin.get(at))
    assert "Second factors for login rules" not in page
    assert "authenticator app (TOTP)" in page


def test_the_form_has_the_fields_of_each_provider() -> None:
    """Each provider of the package has its required fields in the form, by the names of the operation."""
    for name, kind in available([]).items():
        fields = {field.alias or key: field for key, field in kind.fields.model_fields.items()}
        shown = {field for field, _ in FIELDS[name]}
        assert shown <= fields.keys(), name
        assert {key for key, field in fields.items() if field.is_required()} == shown - OPTIONAL, name


async def test_an_auditor_sees_and_changes_nothing(site: Site) -> None:
    """The pages for changes are not linked, and are refused."""
    at = f"/domains/{site.areas.domain}"
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(Role.AUDITOR))
        page = await visitor.get(at)
        assert "/mode" not in page.text
        assert "/remove" not in page.text
        for path in ("/mode", "/settings", "/remove", "/provider", "/first-factor", "/first-factor/set", "/confirm"):
            assert (await visitor.get(at + path)).status_code == 403, path


async def test_a_domain_of_another_tenant_does_not_exist(site: Site, admin: Visitor) -> None:
    """The pages of a domain answer 404 for the id of a foreign domain, for each path."""
    other = await site.areas.tenancy.ensure_tenant(1, 2)
    foreign = await site.areas.domains.add(other, "foreign")
    for path in ("", "/mode", "/settings", "/remove", "/provider", "/preview", "/confirm"):
        assert (await admin.get(f"/domains/{foreign}{path}")).status_code == 404, path
