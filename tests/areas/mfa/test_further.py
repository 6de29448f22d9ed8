"""Tests of the providers that a domain has beside its default one."""

import pytest
import trio
import trio.testing

from sallyport.areas.mfa.circuit import Attached, Unavailable
from sallyport.areas.mfa.provider import Strength
from sallyport.areas.mfa.repo import identity
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.errors import Conflict, Invalid, NotFound, SecretError
from sallyport.base.secret import Secret
from sallyport.store.model import Tx
from sallyport.store.sealed import check_keys
from sallyport.store.vault import Vault
from tests.areas import Areas, areas, clock
from tests.areas.login.second.scripted import NAME, Script, attached
from tests.waiting import until

__all__ = ["areas", "clock"]

HIDDEN = "hunter2-is-what-nobody-may-see"


@pytest.fixture
async def script(areas: Areas) -> Script:
    """Return the script of a provider beside the default one, which is totp."""
    await areas.providers.set(areas.domain, "totp", {}, 60)
    script = Script()
    await script.attach_beside(areas)
    return script


def names(areas: Areas) -> list[str]:
    """Return the names of the domain's providers."""
    return [row.provider for row in areas.providers.all_of(areas.domain)]


async def rule(areas: Areas, **fields: object) -> int:
    """Add a login rule that asks for a second factor."""
    given = {"name": "admins", "action": "mfa_required", **fields}
    return await areas.rules.add(areas.domain, RuleFields.model_validate(given))


async def test_a_provider_beside_the_default_one(areas: Areas, script: Script) -> None:
    """The default provider stays. A name selects a provider, also the default one."""
    further = areas.providers.of(areas.domain, NAME)
    assert isinstance(further, Attached)
    assert (further.name, attached(areas).name, names(areas)) == (NAME, "totp", ["totp", NAME])
    assert areas.providers.of(areas.domain, "totp") is attached(areas)
    assert areas.providers.of(areas.domain, "duo") is Unavailable.NONE
    assert areas.providers.shown(areas.domain, NAME).is_default is False
    assert areas.providers.shown(areas.domain, "totp").is_default
    with pytest.raises(NotFound, match="no MFA provider duo; existing: scripted, totp"):
        areas.providers.shown(areas.domain, "duo")
    assert (await areas.providers.check(areas.domain, NAME)).provider == NAME
    with pytest.raises(NotFound):
        await areas.providers.check(areas.domain, "duo")


async def test_another_domain_does_not_have_it(areas: Areas, script: Script) -> None:
    branch = await areas.domains.add(areas.tenant, "branch")
    assert areas.providers.of(branch, NAME) is Unavailable.NONE
    assert areas.providers.all_of(branch) == []
    with pytest.raises(NotFound):
        await areas.providers.delete(branch, NAME)
    assert names(areas) == ["totp", NAME]


async def test_a_kind_is_once_in_a_domain(areas: Areas, script: Script) -> None:
    """The kind of the default provider is not added beside it. If a further provider becomes the default one, it is no
    further one."""
    with pytest.raises(Conflict, match="totp is the default provider"):
        await areas.providers.set(areas.domain, "totp", {}, 60, beside=True)
    areas.clock.pass_by(1)
    await areas.providers.set(areas.domain, NAME, {}, 60)
    assert names(areas) == [NAME]
    assert areas.providers.of(areas.domain, NAME) is attached(areas)
    rows = await areas.store.read(lambda tx: tx.value(int, "select count(*) from further_providers"))
    assert rows == 0


async def test_it_is_changed_and_removed(areas: Areas, script: Script) -> None:
    """A change replaces the fields. The removal leaves the default provider."""
    before = areas.providers.of(areas.domain, NAME)
    areas.clock.pass_by(1)
    await areas.providers.set(areas.domain, NAME, {}, 30, beside=True)
    after = areas.providers.of(areas.domain, NAME)
    assert isinstance(before, Attached) and isinstance(after, Attached)
    assert (after.timeout_s, after.stamp != before.stamp) == (30.0, True)
    await areas.providers.delete(areas.domain, NAME)
    assert areas.providers.of(areas.domain, NAME) is Unavailable.NONE
    assert names(areas) == ["totp"]
    with pytest.raises(NotFound):
        await areas.providers.delete(areas.domain, NAME)


async def test_a_removed_provider_is_closed(areas: Areas, script: Script, mock_clock: trio.testing.MockClock) -> None:
    """A removed provider is closed, although no login asks for it any more."""
    mock_clock.rate = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.providers.run)
        assert isinstance(areas.providers.of(areas.domain, NAME), Attached)
        await areas.providers.delete(areas.domain, NAME)
        await trio.testing.wait_all_tasks_blocked(0.01)
        for _ in range(2):
            assert areas.providers.of(areas.domain, NAME) is Unavailable.NONE
        mock_clock.jump(301)
        await until(lambda: script.closed == 1)
        nursery.cancel_scope.cancel()
    assert script.closed == 1


async def test_the_fields_are_sealed(areas: Areas, script: Script) -> None:
    """The fields are encrypted for their domain and provider."""
    await areas.providers.set(areas.domain, NAME, {"key": HIDDEN}, 60, beside=True)
    sealed = await areas.store.read(lambda tx: tx.value(bytes, "select fields from further_providers"))
    assert sealed is not None and HIDDEN.encode() not in sealed
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.store.write(lambda tx: tx.execute("update further_providers set domain_id = :d", d=branch))
    await areas.configuration.reload()
    assert areas.providers.of(branch, NAME) is Unavailable.UNREADABLE
    assert (await areas.providers.check(branch, NAME)).problem


async def test_a_rotation_of_the_master_key_keeps_a_provider(areas: Areas, script: Script) -> None:
    """A provider whose fields are only encrypted again stays, with its pending prompts. Other fields of the same time
    replace it."""
    before = areas.providers.of(areas.domain, NAME)
    name = identity(areas.domain, NAME)

    def seal_again(tx: Tx) -> None:
        sealed = tx.value(bytes, "select fields from further_providers")
        assert sealed is not None
        fields = areas.vault.seal(areas.vault.open(sealed, name), name)
        assert fields != sealed
        tx.execute("update further_providers set fields = :fields", fields=fields)

    await areas.store.write(seal_again)
    await areas.configuration.reload()
    assert areas.providers.of(areas.domain, NAME) is before
    await areas.providers.set(areas.domain, NAME, {"key": HIDDEN}, 60, beside=True)
    assert areas.providers.of(areas.domain, NAME) is not before


async def test_a_removed_domain_has_none(areas: Areas, script: Script) -> None:
    """The removal of a domain deletes its further providers at once."""
    await areas.removal.remove(areas.domain)
    assert areas.providers.of(areas.domain, NAME) is Unavailable.NONE
    assert areas.providers.of(areas.domain) is Unavailable.NONE
    rows = await areas.store.read(lambda tx: tx.value(int, "select count(*) from further_providers"))
    assert rows == 0


async def test_both_kinds_of_rows_get_another_master_key(areas: Areas, script: Script) -> None:
    """The fields of the default provider and of the one beside it are in the declared columns."""
    other = Vault(Secret(b"1" * 32))
    for column in areas.app.mfa.sealed:
        await areas.store.read(lambda tx, column=column: check_keys(tx, [column], areas.vault))
        with pytest.raises(SecretError):
            await areas.store.read(lambda tx, column=column: check_keys(tx, [column], other))


async def test_a_provider_beside_none(areas: Areas) -> None:
    """A domain may have a provider for its rules before it has a default one."""
    await areas.providers.set(areas.domain, "totp", {}, 60, beside=True)
    assert (names(areas), areas.providers.has(areas.domain)) == (["totp"], False)


async def test_a_message_names_few_rules(areas: Areas, script: Script) -> None:
    """With very many rules, the message says how many more there are."""
    rules = [f"rule {number}" for number in range(1, 13)]
    areas.providers.used_by.append(lambda _tx, _domain_id: {NAME: rules})
    with pytest.raises(Conflict, match=r"is named by rule 1, .*, rule 10 and 2 more: change them first"):
        await areas.providers.delete(areas.domain, NAME)


async def test_a_named_provider_stays(areas: Areas, script: Script) -> None:
    """A provider that a login rule names is neither removed nor replaced by another kind. The message names the rule.
    It may be changed."""
    further = await rule(areas, provider=NAME)
    with pytest.raises(Conflict, match=f"scripted is named by rule {further} admins: change them first"):
        await areas.providers.delete(areas.domain, NAME)
    default = await rule(areas, provider="TOTP ")
    for change in (
        areas.providers.delete(areas.domain),
        areas.providers.delete(areas.domain, "totp"),
        areas.providers.set(areas.domain, NAME, {}, 60),
    ):
        with pytest.raises(Conflict, match=f"totp is named by rule {default} admins"):
            await change
    await areas.providers.set(areas.domain, "totp", {}, 30)
    await areas.rules.delete(areas.domain, [default])
    await areas.providers.set(areas.domain, NAME, {}, 60)
    assert names(areas) == [NAME]
    with pytest.raises(Conflict):
        await areas.providers.delete(areas.domain)
    assert await areas.providers.usage(areas.domain) == {NAME: [f"rule {further} admins"]}


async def test_a_rule_names_a_provider_of_its_domain(areas: Areas, script: Script) -> None:
    """A rule names an existing provider, and only if it asks for a second factor. The message names the field."""
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.providers.set(branch, "radius", {"host": "192.0.2.7", "secret": "a secret"}, 60)
    for fields, field, message in (
        ({"provider": "radius"}, "provider", "must be an MFA provider of the domain; existing: scripted, totp"),
        ({"provider": NAME, "action": "allow", "users": ["ann"]}, "provider", "needs the action mfa_required"),
        ({"strength": "two_channels", "action": "block", "users": ["ann"]}, "strength", "needs the action"),
        ({"strength": "two_channels"}, "strength", "must be at most any, the highest strength that the default"),
        ({"provider": NAME, "strength": "phishing-resistant"}, "strength", "the highest strength that scripted can"),
    ):
        with pytest.raises(Invalid) as raised:
            await rule(areas, **fields)
        assert [each.field for each in raised.value.fields] == [field]
        assert message in raised.value.fields[0].message


async def test_a_rule_is_changed(areas: Areas, script: Script) -> None:
    """An empty name clears the provider. Another change does not compare the strength with the provider again, which
    may have changed."""
    script.strongest = Strength.PHISHING_RESISTANT
    await script.attach_beside(areas)
    number = await rule(areas, provider=NAME, strength="Phishing-Resistant")
    definition = areas.rules.all_of(areas.domain)[0].definition
    assert (definition.provider, definition.strength) == (NAME, Strength.PHISHING_RESISTANT)
    script.strongest = Strength.ANY
    await script.attach_beside(areas)
    await areas.rules.update(areas.domain, number, RuleFields.model_validate({"priority": 7}))
    for change in ({"strength": "two_channels"}, {"provider": ""}, {"action": "allow", "everyone": True}):
        with pytest.raises(Invalid):
            await areas.rules.update(areas.domain, number, RuleFields.model_validate(change))
    changed = RuleFields.model_validate({"provider": "", "strength": "any"})
    await areas.rules.update(areas.domain, number, changed)
    assert areas.rules.all_of(areas.domain)[0].definition.as_json()["provider"] == ""
