"""Tests of the answers of the operations of roles."""

import httpx
import pytest

from tests.areas import Areas, SetClock
from tests.console.visitor import site_of


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "role staff set for all other products"),
        ({"tag": "site=Bonn"}, "role staff set for site=Bonn"),
        ({"product": "cisco ise"}, "role staff set for Cisco ISE"),
        (
            {"product": "Arubaa Wireless"},
            "role staff set for Arubaa Wireless, which Sallyport never detects; a RADIUS client must have this "
            'product. Did you mean "Aruba Wireless"?',
        ),
        (
            {"product": "own box"},
            "role staff set for own box, which Sallyport never detects; a RADIUS client must have this product.",
        ),
    ],
    ids=["default", "tag", "product", "misspelt product", "own product"],
)
async def test_the_answer_names_what_gets_the_set(
    areas: Areas, clock: SetClock, given: dict[str, str], message: str
) -> None:
    """A product that no device is detected as may be misspelt, so that the set would never be sent."""
    site = site_of(areas, clock)
    headers = {"X-Authorization": await site.token()}
    scope = {"orgId": 1, "tenantId": 1, "domainId": areas.domain, "role": "staff"}
    transport = httpx.ASGITransport(site.app)
    async with httpx.AsyncClient(transport=transport, base_url="https://api.example", headers=headers) as http:
        answer = await http.post("/ad/SetRole", json={**scope, **given})
    assert (answer.status_code, answer.json()["message"]) == (200, message)
