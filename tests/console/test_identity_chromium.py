"""The whole sign-in through an identity provider, and the sign-out, in real Chromium."""

import os
import signal
import time
from pathlib import Path

import httpx
import pytest
import trio
from playwright.sync_api import Page

from tests.console.chromium import Chromium
from tests.console.provider import CLIENT, SECRET, Provider, providing
from tests.peers.programs import needs
from tests.running_service import RunningService
from tests.waiting import until

pytestmark = [pytest.mark.peer, pytest.mark.system, needs("chromium")]
SETTINGS = """
[identity_providers.company]
title = "Company account"
issuer = "{issuer}"
client_id = "{client}"
client_secret_env = "COMPANY_SECRET"
scopes = "openid profile groups"
roles = [{{ group = "{group}", role = "auditor", org = 1, tenant = 1 }}]
"""


def signs_in_and_out(page: Page, base: str) -> tuple[str, str, bool]:
    """Open a link to a page, sign in, and sign out. Return the text of the wanted page, the address after the sign-out,
    and whether the browser is still signed in."""
    page.goto(f"{base}/account?sort=-began")
    page.get_by_role("link", name="Sign in with Company account").click()
    page.wait_for_url(f"{base}/account?sort=-began")
    shown = page.inner_text("body")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{base}/sign-in")
    after = page.url
    page.goto(f"{base}/account")
    return shown, after, "/sign-in" not in page.url


def signs_in(page: Page, base: str) -> str:
    """Sign in, and return the value of the session's cookie."""
    page.goto(f"{base}/sign-in")
    page.get_by_role("link", name="Sign in with Company account").click()
    page.wait_for_url(f"{base}/")
    return next(each["value"] for each in page.context.cookies() if each["name"] == "sallyport")


def configure(directory: Path, provider: Provider, group: str) -> None:
    """Write the settings file of the service."""
    text = SETTINGS.format(issuer=provider.issuer, client=CLIENT, group=group)
    (directory / "sallyport.toml").write_text(text)


async def test_a_person_signs_in_and_out(chromium: Chromium, tmp_path: Path) -> None:
    """A link to a page leads to the provider and back to the page, and the sign-out ends both sessions. After a reload
    of changed settings, a session has ended."""
    async with providing(lambda: int(time.time())) as provider:
        configure(tmp_path, provider, "netops")
        service = RunningService(tmp_path, {"COMPANY_SECRET": SECRET})
        await trio.to_thread.run_sync(service.start)
        try:
            base = f"http://127.0.0.1:{service.ports.http}"
            shown, after, is_in = await trio.to_thread.run_sync(chromium.run, signs_in_and_out, base)
            assert "Ann Example" in shown
            assert "auditor" in shown
            assert (after, is_in) == (f"{base}/sign-in", False)
            assert [each["id_token_hint"].count(".") for each in provider.ended] == [2]
            key = await trio.to_thread.run_sync(chromium.run, signs_in, base)
            async with httpx.AsyncClient(cookies={"sallyport": key}) as thief:
                assert (await thief.get(f"{base}/account")).status_code == 200
                configure(tmp_path, provider, "another")
                os.kill(service.process_id, signal.SIGHUP)
                await until(lambda: "settings_reloaded" in service.log(), seconds=10)
                assert (await thief.get(f"{base}/account")).status_code == 303
            await trio.to_thread.run_sync(service.stop)
        finally:
            service.kill()
        assert SECRET not in service.log()
