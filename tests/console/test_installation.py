"""The pages of certificates, nodes and settings."""

import shutil
from pathlib import Path

import pytest

from sallyport.web.scope import Role
from tests.areas import directory_of
from tests.certs.conftest import made
from tests.console.visitor import Site, text_of

__all__ = ["made"]
PATHS = ("/certificates", "/nodes", "/settings")


async def test_certificates_are_listed_with_their_expiry(site: Site, made: Path) -> None:
    """The page has every certificate with its use, its state and the days that are left."""
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        assert "sallyport cert init" in text_of(await root.get("/certificates"))
        shutil.copytree(made / "certs", directory_of(site.areas.store) / "certs")
        page = text_of(await root.get("/certificates"))
        assert "Tests CA own authority valid" in page
        assert "radius.example.org EAP and RadSec, own authority valid" in page
        found = text_of(await root.get("/certificates?search=proxy"))
        assert "1 in all" in found and "proxy.example.org" in found
        assert "PRIVATE" not in (await root.get("/certificates?format=csv&column=sha256")).text


async def test_a_single_node_is_explained(site: Site) -> None:
    """Without other nodes, the page says what several nodes need."""
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        assert "only node" in text_of(await root.get("/nodes"))
        assert (await root.get("/nodes/other")).status_code == 404


async def test_the_settings_are_shown(site: Site) -> None:
    """The page has each setting with its value, its meaning, and whether it is set."""
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        page = text_of(await root.get("/settings"))
        assert "did_url https://id.example.test yes reload base URL of DIDs" in page
        assert "limits.domains" in text_of(await root.get("/settings?search=limits.domains"))
        assert "public_url" not in text_of(await root.get("/settings?isSet=True"))


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR, Role.AUDITOR])
async def test_a_tenant_does_not_see_the_installation(site: Site, role: Role) -> None:
    """No role of a tenant has the pages, and the menu does not name them."""
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(role))
        home = (await visitor.get("/")).text
        for path in PATHS:
            assert (await visitor.get(path)).status_code == 403
            assert f'href="{path}"' not in home
