"""totalIsMinimum: the mark of a search that has more matches than the service counts."""

from collections.abc import Mapping
from contextlib import closing

import pytest

from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.search import MAX_COUNTED, IndexEntry, SearchIndex
from tests.api.world import LIST_DEVICES, Tenant
from tests.areas import only_sqlite

SEARCH = {"search": "abc"}
NAMED = {"filter": "abc"}
BY_NAME = {"filterBy": "userName", "value": "abc"}
SECOND = {"pageNumber": 2}


@only_sqlite
@pytest.mark.parametrize(
    ("path", "body", "index"),
    [
        (LIST_DEVICES, SEARCH, "devices"),
        ("/ad/GetAllGroupsByDomain", SEARCH, "directory_groups"),
        ("/ad/GetAllAdUsers", SEARCH, "directory_users"),
        (
            "/api/v1/endpointUsers/listAllEpmUsers",
            {"filter": BY_NAME},
            "endpoint_users",
        ),
        ("/api/v1/instances/list", NAMED, "endpoint_instances"),
        ("/api/v1/instanceGroup/listEndpointGroup", NAMED, "endpoint_groups"),
        ("/api/v1/walletService/walletUserList", NAMED | SECOND, "wallets"),
        ("/api/v1/did/SearchDID", {"name": "abc", "domainId": None} | SECOND, "dids"),
    ],
    ids=["devices", "groups", "people", "endpoint-users", "instances", "endpoint-groups", "wallets", "dids"],
)
def test_a_total_that_is_not_counted_further(tenant: Tenant, path: str, body: Mapping[str, object], index: str) -> None:
    """A total up to the maximum is exact, and the answer has no `totalIsMinimum`. With one more match the answer has
    this field.
    """
    store, search = tenant.world.service.data_dir / "sallyport.db", SearchIndex(f"{index}_search")
    with closing(open_connection(store)) as connection:
        (of_tenant,) = connection.execute("select tenant_id from domains where id = ?", [tenant.domain]).fetchone()
    owner = of_tenant if index == "dids" else tenant.domain

    def add(first: int, last: int) -> None:
        """Add index entries that have no rows. The second page counts them but does not show them."""
        with closing(open_connection(store)) as connection, connection:
            entries = [IndexEntry(owner, (1 << 30) + number, ("abc",)) for number in range(first, last + 1)]
            connection.execute("begin immediate")
            search.add_all(SqliteTx(connection), entries)

    def total() -> dict[str, object]:
        answer = tenant.ask(path, **{"domainId": tenant.domain, "pageId": 2, **body})
        return {name: answer[name] for name in ("totalCount", "count", "totalIsMinimum") if name in answer}

    name = "count" if index in {"dids", "wallets"} else "totalCount"
    add(1, MAX_COUNTED)
    assert total() == {name: MAX_COUNTED}
    add(MAX_COUNTED + 1, MAX_COUNTED + 1)
    assert total() == {name: MAX_COUNTED, "totalIsMinimum": True}
