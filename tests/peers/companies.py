"""Identity providers of a company as real programs: oidc-provider (npm), and oidc-provider-mock (PyPI), which ignores
`prompt` and `max_age`, and says of each token that its person has signed in now."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page

from tests.console.provider import SECRET
from tests.peers.npm_verifiers import HERE, MODULES
from tests.peers.programs import find
from tests.ports import free_port
from tests.waiting import eventually

USERS: Final = ("ann", "eve")
"""The users of oidc-provider-mock. At oidc-provider, anybody is a user."""
needs_oidc_provider = pytest.mark.skipif(
    not (MODULES / "oidc-provider").is_dir(), reason="oidc-provider of tests/peers/npm is not installed"
)


@dataclass(frozen=True)
class Company:
    """A running provider. sign_in: signs a user in at the provider's own pages, in Chromium. suffix: what the claim has
    behind the name of the user."""

    issuer: str
    sign_in: Callable[[Page, str], None]
    suffix: str = ""


def sign_in_at_npm(page: Page, name: str) -> None:
    """Type the name and any password, and consent."""
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.locator("[type=submit]").click()
    consent = page.locator("[name=prompt][value=consent]")
    consent.or_(page.locator("main")).wait_for(state="attached")  # only a page of the service has `main`
    if consent.count():
        page.locator("[type=submit]").click()


def sign_in_at_mock(page: Page, name: str) -> None:
    """Choose a user."""
    page.locator("input[name=sub]").fill(name)
    page.get_by_role("button", name="Authorize").click()


@contextmanager
def oidc_provider(directory: Path, redirect_uri: str) -> Iterator[Company]:
    """Run oidc-provider. Any name and password sign in."""
    (directory / "oidc.mjs").write_bytes((HERE / "oidc.mjs").read_bytes())
    (directory / "node_modules").symlink_to(MODULES)
    port = free_port()
    command = [find("node"), "--preserve-symlinks-main", "oidc.mjs", str(port), redirect_uri, SECRET]
    with _running(command, directory, port):
        yield Company(f"http://127.0.0.1:{port}", sign_in_at_npm, "@example.com")


@contextmanager
def oidc_provider_mock(directory: Path, redirect_uri: str) -> Iterator[Company]:
    """Run oidc-provider-mock."""
    port = free_port()
    users = [json.dumps({"sub": name, "preferred_username": name}) for name in USERS]
    options = [option for user in users for option in ("--user-claims", user)]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), *options]
    with _running(command, directory, port):
        yield Company(f"http://127.0.0.1:{port}", sign_in_at_mock)


@contextmanager
def _running(command: Sequence[str], directory: Path, port: int) -> Iterator[None]:
    with (directory / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=output)
        try:
            eventually(lambda: process.poll() is not None or _listens(port), seconds=60)
            assert process.poll() is None, (directory / "output").read_text()
            yield
        finally:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
