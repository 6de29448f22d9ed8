"""Tests of adding, changing and removing authorities."""

from dataclasses import replace

import pytest

from sallyport.areas.authorities.authority import MAX_AUTHORITIES, MAX_OF_DOMAIN, Authority, HolderKind, Revocation
from sallyport.areas.authorities.revocation.certified_repo import CertifiedUser, put
from sallyport.areas.users.accounts.account import Removal
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.radius.eap.certificate_names import NamedBy
from tests.areas import Areas
from tests.areas.authorities.made import MadeAuthority


async def add(areas: Areas, name: str, made: MadeAuthority | None = None, **fields: object) -> Authority:
    """Add an authority to the tenant's domain."""
    pem = (made or MadeAuthority(name)).pem
    return await areas.authorities.add(areas.tenant, name, pem, {"domain_ids": (areas.domain,), **fields})


async def test_an_authority_belongs_to_its_domains(areas: Areas) -> None:
    """It is found by its domain with all its fields, and survives a restart of the service."""
    added = await add(
        areas,
        "Intune",
        kinds=(HolderKind.MACHINES,),
        realms=("corp.example",),
        groups=("laptops",),
        sid_prefixes=("S-1-5-21-1-2-3",),
        names=(NamedBy.SID, NamedBy.UPN),
        strong_only=True,
        revocation=Revocation.HARD,
        crl_addresses=("http://pki.example/a.crl",),
        ocsp_address="http://pki.example/ocsp",
        ocsp_nonce=True,
        use_certificate_addresses=False,
    )
    assert areas.authorities.of_domain(areas.domain) == (added,)
    assert areas.authorities.of_domain(areas.domain + 1) == ()
    again = Areas(areas.store, areas.clock)
    await again.configuration.reload()
    assert again.authorities.present(areas.tenant, added.id) == added
    with pytest.raises(NotFound):
        again.authorities.present(areas.tenant + 1, added.id)


async def test_a_change_is_seen_by_its_stamp(areas: Areas) -> None:
    """Each change gives the authority another stamp; a change to the same values changes nothing."""
    added = await add(areas, "Intune")
    same = await areas.authorities.update(areas.tenant, added.id, added.certificates, {"name": "Intune"})
    assert same == added
    changed = await areas.authorities.update(areas.tenant, added.id, None, {"groups": ("staff",)})
    assert changed == replace(added, groups=("staff",), version=2)
    assert changed.stamp != added.stamp
    assert areas.authorities.of_domain(areas.domain) == (changed,)
    await areas.authorities.delete(areas.tenant, added.id)
    assert areas.authorities.of_domain(areas.domain) == ()
    trail = await areas.store.read(lambda tx: tx.rows("select action from audit_trail where action like 'authority%'"))
    assert [action for (action,) in trail] == ["authority.add", "authority.update", "authority.remove"]


async def test_two_authorities_of_a_domain_never_share_a_key(areas: Areas) -> None:
    """The key of the verified chain says whose certificate it is, whatever the names are."""
    root = MadeAuthority("Root")
    await add(areas, "one", root)
    branch = await areas.domains.add(areas.tenant, "branch")
    with pytest.raises(Conflict, match="authority one of the same domain has the same key"):
        await add(areas, "two", MadeAuthority("Another name", key=root.key))
    other = await add(areas, "two", root, domain_ids=(branch,))
    with pytest.raises(Conflict, match="the same key"):
        await areas.authorities.update(areas.tenant, other.id, None, {"domain_ids": (branch, areas.domain)})
    with pytest.raises(Conflict, match="of this name"):
        await add(areas, "ONE")


@pytest.mark.parametrize("key_id", [pytest.param(b"", id="missing"), pytest.param(b"copied", id="same")])
async def test_two_authorities_of_a_domain_are_never_confused(areas: Areas, key_id: bytes) -> None:
    """The same subject is accepted with another key identifier only: TLS looks for the issuer by both."""
    await add(areas, "one", MadeAuthority("Issuing CA", key_id=b"copied"))
    with pytest.raises(Conflict, match="certificates: the authority one of the same domain"):
        await add(areas, "two", MadeAuthority("issuing  CA", key_id=key_id))
    second = await add(areas, "two", MadeAuthority("Issuing CA"))
    with pytest.raises(Conflict, match="certificates: the authority one"):
        hostile = MadeAuthority("Issuing CA", key_id=key_id)
        await areas.authorities.update(areas.tenant, second.id, hostile.pem, {})
    assert areas.authorities.of_domain(areas.domain)[1] == second


async def test_what_belongs_to_another_tenant_is_not_found(areas: Areas) -> None:
    """Neither an authority nor a domain of another tenant can be used."""
    added = await add(areas, "one")
    other = await areas.tenancy.ensure_tenant(1, 2)
    foreign = await areas.domains.add(other, "foreign")
    for change in (
        areas.authorities.add(other, "two", MadeAuthority().pem, {"domain_ids": (areas.domain,)}),
        areas.authorities.update(areas.tenant, added.id, None, {"domain_ids": (foreign,)}),
        areas.authorities.update(other, added.id, None, {"name": "two"}),
        areas.authorities.delete(other, added.id),
    ):
        with pytest.raises(NotFound):
            await change
    assert areas.authorities.of_domain(areas.domain) == (added,)


async def test_the_numbers_of_authorities_are_limited(areas: Areas) -> None:
    """A domain and a tenant have a maximum number of authorities."""
    for number in range(MAX_OF_DOMAIN):
        await add(areas, f"ca {number}")
    with pytest.raises(Conflict, match="a domain has at most"):
        await add(areas, "one more")
    branches = [await areas.domains.add(areas.tenant, f"branch {each}") for each in range(4)]
    for number in range(MAX_OF_DOMAIN, MAX_AUTHORITIES):
        await add(areas, f"ca {number}", domain_ids=(branches[number % 4],))
    with pytest.raises(Conflict, match="a tenant has at most"):
        await add(areas, "one more", domain_ids=(branches[0],))


async def test_a_removed_domain_loses_its_authorities(areas: Areas) -> None:
    """The authority keeps its other domains, and can be changed while the rows are being deleted."""
    branch = await areas.domains.add(areas.tenant, "branch")
    added = await add(areas, "one", domain_ids=(areas.domain, branch))
    await areas.removal.remove(branch)
    changed = await areas.authorities.update(areas.tenant, added.id, None, {"realms": ("corp.example",)})
    assert changed.domain_ids == (areas.domain,)
    await areas.removal.erase(grace_s=0)
    assert areas.authorities.of_domain(areas.domain) == (changed,)


async def test_a_bundle_that_cannot_be_read_changes_nothing(areas: Areas) -> None:
    """The error names the field."""
    added = await add(areas, "one")
    with pytest.raises(Invalid, match="certificates"):
        await areas.authorities.update(areas.tenant, added.id, "no PEM", {})
    assert areas.authorities.of_domain(areas.domain) == (added,)


async def noted_users(areas: Areas) -> list[str]:
    """Return the stored names of users with certificates."""
    rows = await areas.store.read(lambda tx: tx.rows("select user_name from certified_users order by user_name"))
    return [str(name) for (name,) in rows]


async def test_names_of_users_are_deleted_with_the_authority_and_the_user(areas: Areas) -> None:
    """The rows of a removed authority and those of a deleted endpoint user go; the other rows stay."""
    first, second = await add(areas, "one"), await add(areas, "two")
    for name in ("Ann", "bob"):
        await areas.add_user(areas.domain, name, b"hello")
    users = [
        CertifiedUser(areas.domain, each.id, "aa", "1", name, "", 0, 0, 1 << 60)
        for each in (first, second)
        for name in ("ann", "BOB")
    ]
    await areas.store.write(lambda tx: put(tx, users))
    await areas.authorities.delete(areas.tenant, first.id)
    assert await noted_users(areas) == ["BOB", "ann"]
    await areas.accounts.remove(areas.domain, [Removal(0, "bob", 0)])
    assert await noted_users(areas) == ["ann"]
