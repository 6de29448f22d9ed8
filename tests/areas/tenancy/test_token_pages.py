"""Pages of access tokens, which are read from the store."""

import pytest

from sallyport.areas.tenancy import repo
from sallyport.areas.tenancy.repo import TokenQuery
from sallyport.base.clock import SECOND
from sallyport.web.scope import Role
from tests.areas import Areas, SetClock, only_sqlite
from tests.plans import plans

NAMES = ("Zürich", "alpha", "Beta", "alphabet")


@pytest.fixture
async def tokens(areas: Areas, clock: SetClock) -> dict[str, int]:
    """Create tokens of two tenants, and return the id of each by its name. One is revoked, and one is expired."""
    made = {}
    for name in NAMES:
        until = clock() + SECOND if name == "Beta" else None
        made[name] = (await areas.tenancy.create_token(1, 1, Role.ADMIN, name, until))[0].id
    made["other"] = (await areas.tenancy.create_token(2, 1, Role.AUDITOR, "other", None))[0].id
    await areas.tenancy.revoke(made["alpha"])
    await areas.store.write(lambda tx: areas.tenancy.wallet_token(tx, areas.tenant, "w@example.com"))
    clock.pass_by(2)
    return made


@pytest.mark.parametrize(
    ("query", "names", "total"),
    [
        pytest.param(TokenQuery(1, 1), NAMES, 4, id="a tenant"),
        pytest.param(TokenQuery(None, None), (*NAMES, "other"), 5, id="all tenants"),
        pytest.param(TokenQuery(1, 1, limit=2, offset=1), ("alpha", "Beta"), 4, id="a page"),
        pytest.param(TokenQuery(1, 1, search="ALPHA"), ("alpha", "alphabet"), 2, id="a part of the name"),
        pytest.param(TokenQuery(1, 1, search="ZÜR"), ("Zürich",), 1, id="letters beyond ASCII"),
        pytest.param(TokenQuery(1, 1, status="revoked"), ("alpha",), 1, id="revoked"),
        pytest.param(TokenQuery(1, 1, status="expired"), ("Beta",), 1, id="expired"),
        pytest.param(TokenQuery(1, 1, status="active", limit=1), ("Zürich",), 2, id="active"),
        pytest.param(TokenQuery(1, 1, order="name"), ("alpha", "alphabet", "Beta", "Zürich"), 4, id="by name"),
        pytest.param(TokenQuery(1, 1, order="status"), ("Zürich", "alphabet", "Beta", "alpha"), 4, id="by status"),
        pytest.param(TokenQuery(1, 1, order="id", descending=True), NAMES[::-1], 4, id="newest first"),
        pytest.param(TokenQuery(1, 1, order="unknown"), NAMES, 4, id="unknown order"),
    ],
)
async def test_a_page_of_tokens(
    areas: Areas, tokens: dict[str, int], query: TokenQuery, names: tuple[str, ...], total: int
) -> None:
    """A page has the tokens that match, in the order of the query, and the number of all matches. Tokens of wallets are
    left out."""
    found, count = await areas.tenancy.token_page(query)
    assert [(each.name, each.id) for each in found] == [(name, tokens[name]) for name in names]
    assert count == total


@only_sqlite
async def test_a_page_reads_no_tokens_of_wallets(areas: Areas) -> None:
    """An index has the tokens of a tenant without those of wallets."""
    found = plans(areas.store.path, lambda tx: repo.token_page(tx, TokenQuery(1, 1), 0))
    assert sum("access_tokens_people" in plan for plan in found) == 2
