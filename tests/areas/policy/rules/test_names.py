"""Tests of the warnings about names in a rule that do not exist yet."""

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.names import MAX_COMPARED, MAX_WARNINGS, Names
from sallyport.areas.users.groups.group import Group
from tests.areas import Areas
from tests.areas.directory.world import imported, person

NO_USER = "no such user in this domain yet"
NO_GROUP = "no such group in this domain yet"
NO_CLIENT = "no such RADIUS client in this tenant yet"


async def unknown(areas: Areas, names: Names | None = None, **fields: list[str]) -> list[str]:
    """Return the warnings about these fields of a rule."""
    return await (names or areas.app.rules.names).unknown(areas.domain, RuleFields.model_validate(fields))


@pytest.mark.parametrize(
    ("field", "entry", "warning"),
    [
        ("users", "ROSALIND", ""),
        ("users", "rosalin", f"{NO_USER}; nearest: rosalind"),
        ("users", "zed", NO_USER),
        ("groups", "printers", ""),
        ("groups", "Printer", f"{NO_GROUP}; nearest: Printers"),
        ("groups", "sprinters", f"{NO_GROUP}; nearest: Printers"),
        ("groups", "printersxyz", NO_GROUP),
        ("clients", "vpn-west", ""),
        ("clients", "VPN-Wset", f"{NO_CLIENT}; nearest: VPN-West"),
        ("clients", "192.0.2.0/24", ""),
    ],
)
async def test_the_nearest_name_is_in_the_warning(areas: Areas, field: str, entry: str, warning: str) -> None:
    """A name with the same beginning or the same end, and nearly the same length, is suggested. Case is ignored."""
    await areas.add_user(areas.domain, "rosalind", b"hello")
    await areas.groups.add(areas.domain, Group("Printers"))
    await areas.client(name="VPN-West")
    assert await unknown(areas, **{field: [entry]}) == ([f"{field}: entry 1: {warning}"] if warning else [])


@pytest.mark.parametrize(("more", "last"), [(0, "entry 20: "), (1, "1 more entries do not exist yet")])
async def test_the_number_of_warnings_is_limited(areas: Areas, more: int, last: str) -> None:
    """If there are more names that do not exist, the last warning has their number."""
    found = await unknown(areas, users=[f"user{number}" for number in range(MAX_WARNINGS + more)])
    assert len(found) == MAX_WARNINGS + more
    assert found[-1].startswith(f"users: {last}")


async def test_a_few_names_are_compared(areas: Areas) -> None:
    """A comparison takes time, so that only some of many similar names are compared."""
    names = [*(f"a{number:05}" for number in range(MAX_COMPARED)), "axxxyz"]
    for known, nearest in ((names, ""), (names[1:], "; nearest: axxxyz")):
        of_clients = Names(
            areas.store, areas.domains.table.present, {areas.tenant: {name: name for name in known}}.__getitem__
        )
        assert await unknown(areas, of_clients, clients=["axxxyy"]) == [f"clients: entry 1: {NO_CLIENT}{nearest}"]


async def test_names_in_a_directory_are_compared_after_an_import(areas: Areas) -> None:
    """If another server checks the passwords, the users of the domain are known only after an import."""
    ldap = {"servers": ["ldaps://ldap.example.com"], "baseDN": "dc=example,dc=com"}
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.LDAP, {"ldap": ldap})
    assert await unknown(areas, users=["zed"], groups=["g"]) == []
    await imported(areas, person("rosalind"))
    assert await unknown(areas, users=["rosalind", "zed"]) == [f"users: entry 2: {NO_USER}"]
