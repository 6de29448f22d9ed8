"""Tests of the provider of a domain, and of its replacement."""

import json
from typing import ClassVar

import pytest
import structlog
import trio
import trio.testing

from sallyport.areas.mfa.circuit import Attached, Unavailable
from sallyport.areas.mfa.host import Fields, Host
from sallyport.areas.mfa.provider import NO_WEB
from sallyport.areas.mfa.service import ShownProvider
from sallyport.base.errors import Conflict, Invalid, NotFound
from tests.areas import Areas, areas, clock
from tests.areas.login.second.scripted import NAME, Script, attached, provider
from tests.waiting import until

__all__ = ["areas", "clock"]

HIDDEN = "hunter2-is-what-nobody-may-see"


@pytest.fixture
async def script(areas: Areas) -> Script:
    """Set the domain's provider."""
    script = Script()
    await script.attach(areas)
    return script


async def fields_in_store(areas: Areas) -> bytes:
    """Return the stored fields of the provider."""
    found = await areas.store.read(lambda tx: tx.value(bytes, "select fields from mfa_providers"))
    assert found is not None
    return found


async def test_a_domain_without_a_provider(areas: Areas) -> None:
    """If a domain has no provider, showing and removing its provider report that."""
    assert areas.providers.of(areas.domain) is Unavailable.NONE
    assert not areas.providers.has(areas.domain)
    with pytest.raises(NotFound):
        areas.providers.shown(areas.domain)
    with pytest.raises(NotFound):
        await areas.providers.delete(areas.domain)


async def test_a_provider_is_kept_while_its_fields_are_unchanged(areas: Areas, script: Script) -> None:
    """Other changes of the configuration do not replace the provider. It keeps its circuit and its connections."""
    first = attached(areas)
    await areas.domains.add(areas.tenant, "branch")
    assert attached(areas) is first
    assert (first.name, first.timeout_s) == (NAME, 60.0)
    assert script.closed == 0


async def test_a_change_replaces_the_provider(areas: Areas, script: Script) -> None:
    """Setting the same fields again changes the stamp of the provider, so that earlier challenges can no longer be
    answered."""
    first = attached(areas)
    areas.clock.pass_by(0.001)
    await areas.providers.set(areas.domain, NAME, {}, 60)
    second = attached(areas)
    assert second is not first
    assert second.stamp != first.stamp
    await areas.providers.set(areas.domain, "totp", {}, 60)
    assert attached(areas).name == "totp"
    await areas.providers.delete(areas.domain)
    assert areas.providers.of(areas.domain) is Unavailable.NONE


async def test_each_domain_has_its_own_provider(areas: Areas, script: Script) -> None:
    """Each domain has its own provider, which knows the domain."""
    branch = await areas.domains.add(areas.tenant, "branch")
    assert areas.providers.of(branch) is Unavailable.NONE
    await areas.providers.set(branch, "totp", {}, 30)
    other = areas.providers.of(branch)
    assert isinstance(other, Attached)
    assert (other.name, attached(areas).name) == ("totp", NAME)
    await areas.providers.delete(branch)
    assert attached(areas).name == NAME


async def test_a_change_of_another_process_applies_after_a_reload(areas: Areas, script: Script) -> None:
    other = Areas(areas.store, areas.clock)
    await other.configuration.reload()
    areas.clock.pass_by(1)
    await other.providers.set(areas.domain, "totp", {}, 60)
    assert attached(areas).name == NAME
    await areas.configuration.reload()
    assert attached(areas).name == "totp"


async def test_settings_are_sealed_for_their_row(areas: Areas, script: Script) -> None:
    """Settings are stored encrypted. They cannot be opened with the name of another provider or in another domain."""
    await areas.providers.set(areas.domain, NAME, {"key": HIDDEN}, 60)
    sealed = await fields_in_store(areas)
    assert HIDDEN.encode() not in sealed
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.store.write(lambda tx: tx.execute("update mfa_providers set domain_id = :d", d=branch))
    await areas.configuration.reload()
    assert areas.providers.of(branch) is Unavailable.UNREADABLE
    assert areas.providers.of(areas.domain) is Unavailable.NONE
    assert areas.providers.has(branch)


async def test_shown_fields_have_no_secrets(areas: Areas, script: Script) -> None:
    """If a plug-in is missing, only its name is shown. A configuration that cannot be read is an error."""
    await areas.providers.set(areas.domain, "radius", {"host": "192.0.2.7", "secret": HIDDEN}, 45)
    shown = ShownProvider("radius", True, 45, {"host": "192.0.2.7", "port": 1812})
    assert areas.providers.shown(areas.domain) == shown
    await areas.providers.set(areas.domain, NAME, {"key": HIDDEN}, 60)
    assert areas.providers.shown(areas.domain) == ShownProvider(NAME, True, 60, {})
    del areas.kinds[NAME]
    assert areas.providers.shown(areas.domain) == ShownProvider(NAME, True, 60, {})
    await areas.store.write(lambda tx: tx.execute("update mfa_providers set provider = 'totp'"))
    await areas.configuration.reload()
    with pytest.raises(Conflict, match="cannot be read"):
        areas.providers.shown(areas.domain)


async def test_unsuitable_providers_are_refused(areas: Areas, script: Script) -> None:
    """The message for an unknown name lists the known names.

    The message for wrong fields names the fields. The previous provider is kept.
    """
    with pytest.raises(Invalid) as raised:
        await areas.providers.set(areas.domain, HIDDEN, {}, 60)
    assert raised.value.fields[0].field == "provider"
    assert "totp" in raised.value.fields[0].message
    with pytest.raises(Invalid) as raised:
        await areas.providers.set(areas.domain, "duo", {"skey": f"{HIDDEN} x", "host": "\0"}, 60)
    assert {each.field for each in raised.value.fields} == {"ikey", "skey", "host"}
    assert HIDDEN not in repr(raised.value.fields) + str(raised.value)
    assert attached(areas).name == NAME


class Rude:
    """A plug-in whose constructor raises an error that contains its secret."""

    name: ClassVar[str] = NAME
    fields: ClassVar[type[Fields]] = Fields
    asks_for_codes: ClassVar[bool] = True

    def __init__(self, fields: Fields, host: Host) -> None:
        raise ValueError(HIDDEN)


async def test_a_plug_in_that_raises_is_unreadable(areas: Areas, script: Script) -> None:
    """If a plug-in's constructor fails, the failure is logged once and without its message."""
    areas.kinds[NAME] = Rude  # type: ignore[assignment]
    areas.clock.pass_by(1)
    await areas.providers.set(areas.domain, NAME, {}, 60)
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            assert areas.providers.of(areas.domain) is Unavailable.UNREADABLE
    assert len(logged) == 1
    assert HIDDEN not in repr(logged)


async def test_with_another_master_key_providers_are_unreadable(areas: Areas, script: Script) -> None:
    """A provider that was sealed with another master key is unreadable, and the service starts nevertheless."""
    other = Areas(areas.store, areas.clock, key=bytes(31) + b"\1")
    other.kinds.update(areas.kinds)
    await other.configuration.reload()
    assert other.providers.of(areas.domain) is Unavailable.UNREADABLE


async def test_the_connections_of_a_replaced_provider_are_closed(
    areas: Areas, script: Script, mock_clock: trio.testing.MockClock
) -> None:
    """A replaced provider is closed when no login can use it any more.

    The other providers are closed when the service stops. Each provider is closed once.
    """
    mock_clock.rate = 1
    later = Script()
    async with trio.open_nursery() as nursery:
        for task in areas.app.mfa.node_tasks:
            nursery.start_soon(task)
        assert attached(areas).name == NAME
        areas.kinds[NAME] = provider(later)
        areas.clock.pass_by(1)
        await areas.providers.set(areas.domain, NAME, {}, 60)
        assert attached(areas).name == NAME
        await trio.testing.wait_all_tasks_blocked(0.01)
        mock_clock.jump(299)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert (script.closed, later.closed) == (0, 0)
        mock_clock.jump(2)
        await until(lambda: script.closed == 1)
        nursery.cancel_scope.cancel()
    assert (script.closed, later.closed) == (1, 1)


async def trail(areas: Areas) -> list[tuple[str, str, object]]:
    """Return action, target and changes of the entries about providers in the audit trail."""
    sql = "select action, target, changes from audit_trail where action like 'provider.%' order by id"
    rows = await areas.store.read(lambda tx: tx.rows(sql))
    return [(str(action), str(target), json.loads(str(changes))) for action, target, changes in rows]


async def test_each_change_is_in_the_audit_trail(areas: Areas) -> None:
    """The entries have the fields before and after, and no secret."""
    target, hidden = f"MFA provider webhook of domain {areas.domain}", ["********"] * 2
    hook = {"url": "https://hook.example/", "secret": HIDDEN}
    await areas.providers.set(areas.domain, "webhook", hook, 60)
    await areas.providers.set(areas.domain, "webhook", {**hook, "url": "https://other.example/"}, 30)
    await areas.providers.delete(areas.domain)
    assert await trail(areas) == [
        (
            "provider.set",
            target,
            {
                "provider": [None, "webhook"],
                "timeoutSeconds": [None, 60],
                "url": [None, "https://hook.example/"],
                "secret": [None, "********"],
            },
        ),
        (
            "provider.set",
            target,
            {
                "timeoutSeconds": [60, 30],
                "url": ["https://hook.example/", "https://other.example/"],
                "secret": hidden,
            },
        ),
        (
            "provider.delete",
            target,
            {
                "provider": ["webhook", None],
                "timeoutSeconds": [30, None],
                "url": ["https://other.example/", None],
                "secret": ["********", None],
            },
        ),
    ]


async def test_a_provider_of_a_removed_package(areas: Areas, script: Script) -> None:
    """The fields of a provider whose package is gone cannot be read. They are left out, and the others stay."""
    await areas.providers.set(areas.domain, NAME, {"key": HIDDEN}, 60)
    await areas.providers.set(areas.domain, "totp", {}, 60, beside=True)
    assert areas.providers.fields_of(areas.domain, NAME) is not None
    assert areas.providers.fields_of(areas.domain, "duo") is None
    read = await areas.store.read(lambda tx: areas.providers.read(tx, areas.domain))
    assert [(row.provider, beside) for row, _, beside in read] == [(NAME, False), ("totp", True)]
    del areas.kinds[NAME]
    assert areas.providers.fields_of(areas.domain, NAME) is None
    read = await areas.store.read(lambda tx: areas.providers.read(tx, areas.domain))
    assert [(row.provider, beside) for row, _, beside in read] == [("totp", True)]
    assert await areas.store.read(lambda tx: areas.providers.strongest_in(tx, areas.domain)) is None
    assert "cannot be read" in await areas.store.read(lambda tx: areas.providers.web_problem(tx, areas.domain))


async def test_only_the_default_provider_confirms_without_a_password(areas: Areas, script: Script) -> None:
    """A rule that names another provider cannot be used with the first factor `web`."""

    async def problem(name: str) -> str:
        return await areas.store.read(lambda tx: areas.providers.web_problem(tx, areas.domain, name))

    script.web_problem = ""
    await script.attach(areas)
    assert [await problem(name) for name in ("", NAME, "totp")] == ["", "", NO_WEB]


async def test_the_hints_of_a_domain(areas: Areas, script: Script) -> None:
    """A domain whose first factor is `web` has a warning if its provider cannot confirm its logins."""
    found = areas.domains.table.present(areas.domain)
    assert areas.domains.warnings(found) == []
    await areas.store.write(lambda tx: tx.execute("update domains set first_factor = 'web'"))
    await areas.configuration.reload()
    found = areas.domains.table.present(areas.domain)
    warning = f"the first factor web admits nobody: {NO_WEB}"
    assert any(warning in each for each in areas.domains.warnings(found))
