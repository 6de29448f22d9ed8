"""A million credentials cost a login and a page no more than ten do: nothing walks through a domain's."""

import pytest

from sallyport.did.credentials import repo as credentials
from sallyport.did.credentials.model import Status
from sallyport.did.dids import repo as dids
from sallyport.did.dids.model import Kind
from sallyport.did.held import repo as held
from sallyport.did.presentations import repo as requests
from sallyport.did.wallets import repo as wallets
from sallyport.store.model import Work
from sallyport.store.search import Stretch
from tests.areas import Areas
from tests.plans import plans

DEEP = Stretch(3, 500_000, 10)


@pytest.mark.parametrize(
    "work",
    [
        lambda tx: held.holder_of_user(tx, 3, "ann", "did:key:z", 0, 1),
        lambda tx: held.holder_of_user(tx, 3, "ann", "did:key:z", 7, 1),
        lambda tx: held.wallet_of_holder(tx, 3, "did:key:z"),
        lambda tx: held.users_of_holder(tx, 3, "did:key:z"),
        lambda tx: held.of_wallet(tx, 5, 1),
        lambda tx: held.by_name(tx, 3, "urn:uuid:z"),
        lambda tx: dids.get(tx, 3, "did:key:z", Kind.USER),
        lambda tx: dids.of_tenant(tx, 1, "did:key:z", Kind.ISSUER),
        lambda tx: dids.document(tx, "did:web:a.test"),
        lambda tx: requests.first_open(tx, 5, "did:key:z", 1),
        lambda tx: requests.close_all(tx, 3, "did:key:z", "", 1),
    ],
    ids=lambda work: ".".join(work.__code__.co_names),
)
async def test_one_is_found_by_what_is_its_own(areas: Areas, work: Work[object]) -> None:
    """By a wallet, a DID, a name or a user name: no step of a look-up goes by domain or tenant alone."""
    found = plans(areas.store.path, work)
    assert found
    assert not [plan for plan in found if plan.startswith("SCAN") or plan.endswith(("(domain_id=?)", "(tenant_id=?)"))]


@pytest.mark.parametrize("entries", [credentials.page, lambda tx, stretch: credentials.entries(tx, stretch, 1)])
async def test_any_page_of_credentials_is_found_by_its_places(areas: Areas, entries: object) -> None:
    """The last one as quickly as the first."""
    found = plans(areas.store.path, lambda tx: entries(tx, DEEP))  # type: ignore[operator]
    assert "SEARCH credentials USING INDEX credentials_place (domain_id=? AND place>? AND place<?)" in found
    assert not [plan for plan in found if "SCAN" in plan or "TEMP B-TREE" in plan]


@pytest.mark.parametrize(
    "work",
    [
        lambda tx: dids.page(tx, DEEP),
        lambda tx: dids.page(tx, DEEP, issuer_id=7),
        lambda tx: dids.page(tx, DEEP, wallet_id=5),
        lambda tx: dids.search(tx, 1, "", None, 500_000, 10),
        lambda tx: dids.search(tx, 1, "", Kind.USER, 500_000, 10),
        lambda tx: wallets.page(tx, DEEP),
        lambda tx: credentials.of_wallet(tx, 5, Status.ACCEPTED, DEEP),
    ],
    ids=["DIDs", "of an issuer", "of a wallet", "of a tenant", "of a kind", "wallets", "a wallet's credentials"],
)
async def test_other_pages_are_counted_off_by_an_index(areas: Areas, work: Work[object]) -> None:
    """In order and without the rows before them: these lists lose entries, so that an entry has no place for good."""
    found = plans(areas.store.path, work)
    assert any("COVERING INDEX" in plan for plan in found)
    assert not [plan for plan in found if "SCAN dids" in plan or "SCAN credentials" in plan or "TEMP B-TREE" in plan]


async def test_a_did_is_searched_by_itself(areas: Areas) -> None:
    """A whole DID is looked up, and not looked for."""
    found = plans(areas.store.path, lambda tx: dids.search(tx, 1, "did:key:z", Kind.USER, 0, 10))
    assert "SEARCH dids USING INDEX dids_did (did=?)" in found
