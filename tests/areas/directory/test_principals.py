"""The groups and units of a principal, which is found by any of its names."""

import trio
import trio.testing

from sallyport.areas.directory.principals import INVALIDATE_S, NOBODY, UNCLEAR, Invalidations, Principals
from sallyport.areas.directory.stored import repo
from sallyport.store.model import ListQuery
from tests.areas import Areas, only_sqlite
from tests.areas.directory.world import group, groups_of, imported, person
from tests.plans import plans

ANN = "uid=ann,ou=People,dc=x"


async def test_a_domain_without_people_is_answered_from_memory(areas: Areas) -> None:
    assert areas.directory.principals.cached(areas.domain, "ann") is NOBODY


async def test_groups_and_units_are_found_and_cached(areas: Areas) -> None:
    """Direct groups, nested groups and units are found in lower case, by a name in any letter case. They are cached
    until the domain changes.
    """
    await imported(areas, person("Ann") + group("ops", ANN) + group("STÄFF", "cn=ops,dc=x"))
    principals = areas.directory.principals
    assert principals.cached(areas.domain, "ann") is None
    found = await principals.find(areas.domain, "ANN", ())
    assert (found.groups, found.ous) == ({"ops", "stäff"}, {"people"})
    assert principals.cached(areas.domain, "aNN") is found
    await imported(areas, group("ops"))
    assert principals.cached(areas.domain, "ann") is None
    assert await groups_of(areas, "ann") == frozenset()
    assert await groups_of(areas, "nobody") == frozenset()


@only_sqlite
async def test_the_groups_of_a_person_are_read_by_their_names(areas: Areas) -> None:
    """A list of people shows the groups of each person. It must not read all groups of the directory for each."""
    await imported(areas, person("Ann") + group("ops", ANN))
    stretch = ListQuery(areas.domain, 0, 10)
    (ann,), _ = await areas.store.read(lambda tx: repo.users(tx, stretch, ""))
    assert await areas.store.read(lambda tx: repo.names_of_own_groups(tx, ann)) == ["ops"]
    found = plans(areas.store.path, lambda tx: repo.names_of_own_groups(tx, ann))
    assert "SEARCH g USING INDEX directory_groups_dn (directory_id=? AND dn_key=?)" in found


async def test_a_login_folds_no_name_of_a_group(areas: Areas) -> None:
    """The names of groups are folded when they are written. If a node of an earlier release has written a name, a login
    folds it. A renamed group has its new name."""
    await imported(areas, person("Ann") + group("STÄFF", ANN))
    await areas.store.write(lambda tx: tx.execute("update directory_groups set name_key = 'stored'"))
    areas.directory.principals.forget()
    assert await groups_of(areas, "ann") == {"stored"}
    await areas.store.write(lambda tx: tx.execute("update directory_groups set name_key = null"))
    areas.directory.principals.forget()
    assert await groups_of(areas, "ann") == {"stäff"}
    await imported(areas, "dn: cn=STÄFF,dc=x\nchangetype: modrdn\nnewrdn: cn=Öps\ndeleteoldrdn: 1\n\n")
    assert await groups_of(areas, "ann") == {"öps"}


async def test_both_encodings_of_an_accent_match(areas: Areas) -> None:
    """A name matches whether a letter with an accent is one character or a letter and a combining character."""
    await imported(areas, person("Zoe\u0308") + group("ops", "uid=Zoe\u0308,ou=People,dc=x"))
    assert await groups_of(areas, "zoë") == await groups_of(areas, "zoe\u0308") == {"ops"}


async def test_a_user_principal_name_is_an_alias(areas: Areas) -> None:
    """If the realm of a user principal name is one of the domain's, its first part identifies the person. If that part
    is the login name of another person, it does not.
    """
    upn = "userPrincipalName: ann.smith@corp"
    await imported(areas, person("ann", upn) + person("ben", "userPrincipalName: ann@corp") + group("ops", ANN))
    assert await groups_of(areas, "ann.smith", ["corp"]) == {"ops"}
    assert await groups_of(areas, "ann.smith", ["branch"]) == frozenset()
    assert await groups_of(areas, "ann", ["corp"]) == {"ops"}
    found = [await areas.directory.principals.find(areas.domain, name, ("corp",)) for name in ("ANN", "ann.smith")]
    assert {each.name for each in found} == {"ann"}


async def test_an_ambiguous_name_has_no_groups(areas: Areas) -> None:
    """If people of two directories in a domain have the same name, the name has no groups."""
    await imported(areas, person("ann") + group("ops", ANN))
    await imported(areas, person("ann"), name="other")
    assert await areas.directory.principals.find(areas.domain, "ann", ()) == UNCLEAR


async def test_domains_with_people_are_known_after_a_restart(areas: Areas) -> None:
    await imported(areas, person("ann"))
    again = Principals(areas.store)
    assert again.cached(areas.domain, "ann") is NOBODY
    await again.load()
    assert again.cached(areas.domain, "ann") is None


async def test_the_cache_is_bounded(areas: Areas) -> None:
    """When the cache is full, the oldest name is evicted."""
    await imported(areas, person("ann"))
    principals = Principals(areas.store, max_cached=3)
    await principals.load()
    for name in ("a", "b", "c", "ann"):
        await principals.find(areas.domain, name, ())
    assert principals.cached(areas.domain, "a") is None
    assert principals.cached(areas.domain, "ann") is not None


async def test_each_tenant_has_a_share_of_the_cache(areas: Areas) -> None:
    """Names of another tenant evict no entries of this tenant. A change invalidates only the entries of its own
    domain.
    """
    await imported(areas, person("ann"))
    other = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "other")
    principals = Principals(areas.store, max_cached=3)
    await principals.load()
    await principals.find(areas.domain, "ann", ())
    principals.changed(other)
    for number in range(10):
        await principals.find(other, f"user{number}", ())
    assert principals.cached(areas.domain, "ann") is not None
    principals.changed(areas.domain)
    assert principals.cached(areas.domain, "ann") is None
    assert principals.cached(other, "user9") == NOBODY


async def test_a_domain_is_invalidated_at_most_once_a_second(autojump_clock: trio.testing.MockClock) -> None:
    """The first change of a domain is passed on at once, and later changes at most once a second. The last one is
    passed on by flush.
    """
    invalidated: list[tuple[int, float]] = []
    began = trio.current_time()
    invalidations = Invalidations(
        lambda domain_id: invalidated.append((domain_id, round(trio.current_time() - began, 1)))
    )
    for _ in range(20):
        invalidations.changed(1)
        await trio.sleep(INVALIDATE_S / 8)
    invalidations.changed(2)
    assert invalidated == [(1, 0.0), (1, 1.0), (1, 2.0), (2, 2.5)]
    invalidations.flush(1)
    invalidations.flush(1)
    invalidations.flush(2)
    assert invalidated[4:] == [(1, 2.5)]
    invalidations.changed(1)
    assert invalidated[5:] == [(1, 2.5)]
