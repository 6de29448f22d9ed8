"""Profiles in the store: their changes, links and limits, and the removal of their domain."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.profiles.profile import MAX_PROFILES, Method, Profile, Trust
from sallyport.areas.profiles.service import Profiles
from sallyport.areas.profiles.signing import ProfileSigner
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.certs.folder import CertificateFolder, present
from tests.areas import Areas, stored
from tests.areas.profiles.conftest import trust_in

DAY_S = 86_400


async def add(areas: Areas, name: str = "Office", **changes: object) -> None:
    """Add a profile to the domain."""
    domain = areas.domains.table.present(areas.domain)
    await areas.app.profiles.service.set(domain, name, {"ssids": ("Office",), **changes})


async def test_a_new_profile_suits_its_domain(areas: Areas) -> None:
    """The method is one that the first factor can check. The outer identity has a realm of the domain. Both stay when
    another field changes, and so do the UUIDs in the files.
    """
    profiles = areas.app.profiles.service
    await add(areas)
    first = await profiles.present(areas.domain, "OFFICE")
    assert (first.method, first.outer_identity) == (Method.PEAP, "anonymous@corp")
    await add(areas, ssids=("Office 2",), hidden=True)
    second = await profiles.present(areas.domain, "Office")
    assert (second.id, second.uuid, second.ssids, second.hidden) == (first.id, first.uuid, ("Office 2",), True)
    ldap = await areas.domains.add(
        areas.tenant, "two words", first_factor=FirstFactor.LDAP, realms=("x y", "example.org")
    )
    await profiles.set(areas.domains.table.present(ldap), "lan", {"wired": True})
    other = await profiles.present(ldap, "lan")
    assert (other.method, other.outer_identity, other.ssids) == (Method.TTLS_PAP, "anonymous@example.org", ())


async def test_a_profile_without_a_network(areas: Areas) -> None:
    """A profile has an SSID or a wired network, also after a change. A refused change stores nothing."""
    with pytest.raises(Invalid) as refused:
        await add(areas, ssids=())
    assert refused.value.fields[0].field == "ssids"
    await add(areas)
    with pytest.raises(Invalid):
        await add(areas, ssids=())
    assert (await areas.app.profiles.service.present(areas.domain, "Office")).ssids == ("Office",)


async def test_a_domain_has_a_limit_of_profiles(areas: Areas) -> None:
    for number in range(MAX_PROFILES):
        await add(areas, f"p{number}")
    with pytest.raises(Conflict, match="at most 50"):
        await add(areas, "one more")
    await add(areas, "P7", hidden=True)
    assert len(await areas.app.profiles.service.of_domain(areas.domain)) == MAX_PROFILES


async def test_a_link_ends(areas: Areas) -> None:
    """A link works until it expires, until the next link is made, until it is ended, or until the profile is removed.
    The store has only its hash.
    """
    profiles = areas.app.profiles.service
    await add(areas)
    _, old = await profiles.make_link(areas.domain, "Office", 1)
    _, link = await profiles.make_link(areas.domain, "Office", 1)
    assert (await profiles.behind(link)).name == "Office"
    assert link.encode() not in stored(areas.store)
    areas.clock.pass_by(DAY_S - 1)
    await profiles.behind(link)
    areas.clock.pass_by(1)
    _, ended = await profiles.make_link(areas.domain, "Office", 5)
    await profiles.make_link(areas.domain, "Office", 0)
    _, last = await profiles.make_link(areas.domain, "Office", 5)
    await profiles.behind(last)
    await profiles.remove(areas.domain, "office")
    for each in (old, link, ended, last, "", "x"):
        with pytest.raises(NotFound):
            await profiles.behind(each)


async def test_a_restored_backup_has_no_links(areas: Areas) -> None:
    """A link that was ended after the backup does not come back, if the tokens of the backup are revoked."""
    profiles = areas.app.profiles.service
    await add(areas)
    _, link = await profiles.make_link(areas.domain, "Office", 1)
    await areas.store.write(lambda tx: areas.app.areas.void(tx, False))
    await profiles.behind(link)
    await areas.store.write(lambda tx: areas.app.areas.void(tx, True))
    with pytest.raises(NotFound):
        await profiles.behind(link)
    assert (await profiles.present(areas.domain, "Office")).link_expires_at is None


async def test_a_removed_domain_takes_its_profiles_along(areas: Areas) -> None:
    """The link ends with the removal, before the rows are deleted."""
    profiles = areas.app.profiles.service
    await add(areas)
    _, link = await profiles.make_link(areas.domain, "Office", 1)
    await areas.removal.remove(areas.domain)
    with pytest.raises(NotFound):
        await profiles.behind(link)
    await areas.removal.finish()
    assert not await areas.store.read(lambda tx: list(tx.rows("select id from network_profiles")))


async def test_files_need_the_servers_certificate(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a certificate, a file is an error that says what to do. Then each file of the list is made."""
    monkeypatch.setattr(areas.app.parts.certificates, "_look_s", 0.0)
    profiles = areas.app.profiles.service
    await add(areas, wired=True)
    profile = await profiles.present(areas.domain, "Office")
    with pytest.raises(Conflict, match="cert init"):
        await profiles.made(profile, areas.tenant, "office.mobileconfig")
    CertificateFolder(areas.settings.data_dir).make("CA", ["radius.example.org"], present())
    made = await profiles.made(profile, areas.tenant, "office-wired.xml", "ann")
    assert b"radius.example.org" in made.content and made.file.media_type == "application/xml"
    for name in ("../office.mobileconfig", "office", ""):
        with pytest.raises(NotFound, match="no such file"):
            await profiles.made(profile, areas.tenant, name)


async def test_tenants_take_turns(areas: Areas, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant with many requests does not delay another tenant by all of them."""
    await add(areas)
    reader, order = trust_in(data_dir), list[str]()
    profiles = Profiles(areas.store, reader, ProfileSigner(None, None), areas.clock)
    profile, started, go = await profiles.present(areas.domain, "Office"), trio.Event(), threading.Event()

    def of(asked: Profile) -> Trust:
        trio.from_thread.run_sync(started.set)
        go.wait(30)
        order.append(asked.name)
        return Trust()

    monkeypatch.setattr(reader, "of", of)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(profiles.trust_of, profile, 1)
        await started.wait()
        for name in ("second", "third"):
            nursery.start_soon(profiles.trust_of, replace(profile, name=name), 1)
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(profiles.trust_of, replace(profile, name="other"), 2)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    assert order == ["Office", "second", "other", "third"]


async def test_only_files_for_apple_are_signed(areas: Areas, data_dir: Path) -> None:
    """With a key, a configuration profile is in the signature, and the other files are as without."""
    await add(areas)
    folder = CertificateFolder(data_dir)
    signer = ProfileSigner(folder.server, folder.server_key)
    made = {}
    for each in (signer, ProfileSigner(None, None)):
        profiles = Profiles(areas.store, trust_in(data_dir), each, areas.clock)
        profile = await profiles.present(areas.domain, "Office")
        for name in ("office.mobileconfig", "office-1.xml"):
            made[each, name] = (await profiles.made(profile, areas.tenant, name)).content
    signed, plain = [content for (_, name), content in made.items() if name == "office.mobileconfig"]
    assert plain.startswith(b"<?xml") and not signed.startswith(b"<?xml") and plain in signed
    first, second = [content for (_, name), content in made.items() if name == "office-1.xml"]
    assert first == second


async def test_changes_are_in_the_audit_trail(areas: Areas) -> None:
    """Each change has an entry with the changed fields. The entry of a link has no link."""
    profiles = areas.app.profiles.service
    await add(areas)
    await add(areas, hidden=True)
    _, link = await profiles.make_link(areas.domain, "Office", 1)
    await profiles.remove(areas.domain, "Office")
    rows = await areas.store.read(
        lambda tx: tx.rows("select action, target, changes from audit_trail where target like 'profile %' order by id")
    )
    assert [row[0] for row in rows] == ["profile.set", "profile.set", "profile.link", "profile.remove"]
    assert rows[1][1:] == ("profile Office", '{"hidden": [false, true]}')
    assert link not in str(rows)
