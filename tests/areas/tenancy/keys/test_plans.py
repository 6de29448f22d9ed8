"""The query plans of API keys."""

from sallyport.areas.tenancy.keys import repo
from tests.areas import Areas, only_sqlite
from tests.plans import plans


@only_sqlite
async def test_the_successors_of_a_key_are_found_by_an_index(areas: Areas) -> None:
    """The renewal and the revocation of a key read no keys of other domains."""
    found = plans(areas.store.path, lambda tx: repo.chain(tx, 1))
    assert [plan for plan in found if "SCAN" in plan] == []
    assert any("api_keys_successors" in plan for plan in found)


@only_sqlite
async def test_ended_keys_are_found_by_an_index(areas: Areas) -> None:
    """The creation of a key reads no keys of the domain except those that it deletes."""
    found = plans(areas.store.path, lambda tx: repo.sweep(tx, areas.domain, 1))
    assert "SEARCH api_keys USING INDEX api_keys_ended (domain_id=? AND <expr><?)" in found
