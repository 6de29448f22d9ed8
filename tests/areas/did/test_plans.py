"""Query plans. A login or a page takes no longer with a million credentials than with ten."""

from pathlib import Path

import pytest

from sallyport.areas.did.credentials import repo as credentials
from sallyport.areas.did.credentials.credential import Credential, Status
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind, NewDid, Search
from sallyport.areas.did.presentations import repo as requests
from sallyport.areas.did.wallets import repo as wallets
from sallyport.areas.did.wallets.wallet import NewWallet
from sallyport.store.counters import PART_BITS
from sallyport.store.model import ListQuery, Work
from tests.areas import new_database
from tests.plans import plans
from tests.store.memory import store_in_memory

PART = 1 << PART_BITS
DEEP = ListQuery(3, 500_000, 10)
CREDENTIAL = Credential(
    **dict.fromkeys(Credential._fields, 7) | {"domain_id": 3}  # type: ignore[arg-type]
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a store without rows."""
    path = tmp_path_factory.mktemp("plans") / "s.db"
    path.write_bytes(new_database())
    return path


@pytest.mark.parametrize(
    "work",
    [
        lambda tx: credentials.holder_of_user(tx, 3, "ann", "did:key:z", 0, 1),
        lambda tx: credentials.holder_of_user(tx, 3, "ann", "did:key:z", 7, 1),
        lambda tx: credentials.wallet_of_holder(tx, 3, "did:key:z"),
        lambda tx: credentials.users_of_holder(tx, 3, "did:key:z"),
        lambda tx: credentials.users_of(tx, CREDENTIAL),
        lambda tx: credentials.valid_of_wallet(tx, 5, 1),
        lambda tx: credentials.by_uuid(tx, 3, "urn:uuid:z"),
        lambda tx: dids.get(tx, 3, "did:key:z", DidKind.USER),
        lambda tx: dids.of_tenant(tx, 1, "did:key:z", DidKind.ISSUER),
        lambda tx: dids.document(tx, "did:web:a.test"),
        lambda tx: requests.first_open(tx, 5, "did:key:z", 1),
        lambda tx: requests.listed(tx, 3, 0, 50),
        lambda tx: requests.close_all(tx, 3, "did:key:z", "", 1),
        lambda tx: requests.close_all(tx, 3, "", "did:key:z", 1),
    ],
    ids=lambda work: ".".join(work.__code__.co_names),
)
def test_a_look_up_uses_a_specific_index(path: Path, work: Work[object]) -> None:
    """A look-up uses the index of a wallet, DID, name or user name. It never uses an index of only the domain or the
    tenant.
    """
    found = plans(path, work)
    assert found
    assert not [plan for plan in found if plan.startswith("SCAN") or plan.endswith(("(domain_id=?)", "(tenant_id=?)"))]


def test_a_page_of_credentials_is_found_by_its_position(path: Path) -> None:
    """A page of credentials is found by its position, so the last page takes no longer than the first one."""
    found = plans(path, lambda tx: credentials.page(tx, DEEP))
    assert "SEARCH credentials USING INDEX credentials_place (domain_id=? AND place>? AND place<?)" in found
    assert not [plan for plan in found if "SCAN" in plan or "TEMP B-TREE" in plan]


@pytest.mark.parametrize(
    "work",
    [
        lambda tx: dids.page(tx, DEEP),
        lambda tx: dids.page(tx, DEEP, issuer_id=7),
        lambda tx: dids.page(tx, DEEP, wallet_id=5),
        lambda tx: dids.search(tx, Search(1, offset=500_000)),
        lambda tx: dids.search(tx, Search(1, kind=DidKind.USER, offset=500_000)),
        lambda tx: dids.search(tx, Search(1, kind=DidKind.ISSUER, domain_id=3, offset=500_000)),
        lambda tx: wallets.page(tx, DEEP),
        lambda tx: credentials.of_wallet(tx, 5, Status.ACCEPTED, DEEP),
    ],
    ids=[
        "DIDs",
        "of an issuer",
        "of a wallet",
        "of a tenant",
        "of a kind",
        "of a kind in a domain",
        "wallets",
        "a wallet's credentials",
    ],
)
def test_other_pages_skip_rows_in_an_index(path: Path, work: Work[object]) -> None:
    """Entries of these lists can be deleted, so they have no fixed position. The rows before a page are skipped in an
    index and are not read. DIDs of a domain are skipped in blocks.
    """
    found = plans(path, work)
    assert any("COVERING INDEX" in plan for plan in found)
    assert not [plan for plan in found if "SCAN dids" in plan or "SCAN credentials" in plan or "TEMP B-TREE" in plan]


def test_a_whole_did_is_found_by_its_index(path: Path) -> None:
    found = plans(path, lambda tx: dids.search(tx, Search(1, "did:key:z", DidKind.USER)))
    assert "SEARCH dids USING INDEX dids_did (did=?)" in found
    found = plans(path, lambda tx: dids.search(tx, Search(1, kind=DidKind.USER, domain_id=3, did_id=7)))
    assert "SEARCH dids USING INTEGER PRIMARY KEY (rowid=?)" in found


def test_few_issuers_beside_many_holders_are_found_by_their_kind(path: Path) -> None:
    """A page of a domain's issuers reads no holder, and no issuer of another domain."""
    found = plans(path, lambda tx: dids.search(tx, Search(1, kind=DidKind.ISSUER, domain_id=3)))
    assert "SEARCH dids USING COVERING INDEX dids_domain_kind (domain_id=? AND kind=? AND deleted_at=?)" in found


def test_a_late_page_equals_the_part_of_the_whole_list() -> None:
    """A late page is right even if earlier DIDs are deleted and DIDs of another domain are between them."""
    with store_in_memory("pragma foreign_keys = off") as tx:
        for number in range(PART + PART // 2):
            domain = 4 if number % 8 == 0 else 3
            new = NewDid(domain, "key", "", "", "Ed25519")
            kind = DidKind.USER if number % 2 else DidKind.ISSUER
            dids.add(tx, 1, new, kind, f"did:key:{number}", 1, wallet_id=None, issuer_id=None)
            wallets.add(tx, NewWallet(domain, "", f"{number}@corp.example", ""), "wk_x", number, 1)
        for record in dids.page(tx, ListQuery(3, 7, 40))[0]:
            dids.delete(tx, record, 2)
        sql = "select id from {} where domain_id = 3 order by id"
        left = [row for (row,) in tx.rows(sql.format("dids").replace(" order", " and deleted_at is null order"))]
        every = [row for (row,) in tx.rows(sql.format("wallets"))]
        for offset in (0, PART - 1, PART, PART + 3, len(left) - 3, len(left), 10 * PART):
            listed, total = dids.page(tx, ListQuery(3, offset, 5))
            assert ([each.id for each in listed], total) == (left[offset : offset + 5], len(left)), offset
            found, total = wallets.page(tx, ListQuery(3, offset, 5))
            assert ([each.id for each in found], total) == (every[offset : offset + 5], len(every)), offset
