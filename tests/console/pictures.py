"""A program that takes the pictures of the documentation from the console of `sallyport demo`.

    python -m tests.console.pictures [DIRECTORY] [--all]

With --all, it takes every page of the console instead, filled with data: light and dark, wide and 360 px narrow, to be
looked at one by one. It finds the pages by following links from Home. It lists the pages without such a link, and those
that are wider than the window. It uses the default ports of the demo.
"""

import argparse
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page
from pyotp import TOTP, parse_uri

from sallyport.console.pages import ALL
from tests.console.chromium import Chromium
from tests.console.furnished import Furnisher
from tests.console.visitor import PASSWORD
from tests.service import PROGRAM

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "console" / "pictures"
BASE, RADIUS = "http://127.0.0.1:8080", 1812
PUBLISHED = {
    "home": "/",
    "logins": "/logins?domain=2",
    "login": "/logins?domain=2&reason=not+enrolled&appliedDecision=reject",
    "senders": "/senders",
}
"""The address of each picture of the documentation. Of a login, it is a list, whose first login is opened."""
STARTS = (
    "/clients/2",
    "/devices/delete?domain=2&device=1&device=2",
    "/directories/2?domain=2",
    "/domains/2",
    "/domains/2/first-factor",
    "/domains/2/mode?to=enforce",
    "/people/person?domain=2&user=carol",
    "/people/person/code?domain=2&user=alice",
    "/people/person/disconnect?domain=2&user=alice",
)
"""Addresses from which --all starts in addition to Home: pages of forms, and pages with more links than the first one
of their kind."""
Scheme = Literal["light", "dark"]
SCHEMES: Sequence[Scheme] = ("light", "dark")
LINKS = "links => links.map(each => each.getAttribute('href').split('#')[0])"


def sign_in(page: Page, code: str) -> None:
    """Sign in as the administrator root."""
    for label, value in (("Name", "root"), ("Password", PASSWORD), ("Code of the authenticator app", code)):
        page.get_by_label(label).fill(value)
    page.get_by_label("Code of the authenticator app").press("Enter")
    page.wait_for_url(f"{BASE}/")


def take_published(page: Page, code: str, directory: Path) -> None:
    """Take the pictures of the documentation."""
    page.set_viewport_size({"width": 1100, "height": 660})
    page.goto(f"{BASE}/sign-in")
    page.screenshot(path=directory / "sign-in.png", clip={"x": 340, "y": 20, "width": 420, "height": 640})
    sign_in(page, code)
    for name, path in PUBLISHED.items():
        page.goto(BASE + path)
        if name == "login":
            page.locator("tbody a").first.click()
            page.get_by_role("heading", name="Steps").wait_for()
        page.screenshot(path=directory / f"{name}.png")


def take_all(page: Page, code: str, directory: Path) -> list[str]:
    """Take every page in four looks. Return the pages that are too wide, and those that no link leads to."""
    page.goto(f"{BASE}/sign-in")
    found = shoot(page, directory, "sign-in")
    sign_in(page, code)
    paths = sorted((each.path for area in ALL for each in area.pages), key=lambda path: "{" in path)
    patterns = {path: re.compile(re.sub(r"\{[^}]*\}", r"[^/?]+", path) + r"(\?.*)?") for path in paths}

    def path_of(address: str) -> str | None:
        return next((path for path, pattern in patterns.items() if pattern.fullmatch(address)), None)

    queue = ["/", *STARTS]
    seen = {path_of(address) for address in queue}
    for address in queue:
        page.goto(BASE + address)
        found += shoot(page, directory, address.partition("?")[0].strip("/").replace("/", "-") or "home")
        for link in page.locator("a[href^='/']").evaluate_all(LINKS):
            path = path_of(link)
            if path not in (None, *seen):
                seen.add(path)
                queue.append(link)
    return [*found, *(f"{path}: no link" for path in paths if path not in seen)]


def shoot(page: Page, directory: Path, name: str) -> list[str]:
    """Take the page in four looks. Return its name with the width if it is wider than the window."""
    wide = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 660})
            if (needed := page.evaluate("document.documentElement.scrollWidth")) > width:
                wide.append(f"{name}: {needed} px")
            page.screenshot(path=directory / f"{name}-{scheme}-{width}.png", full_page=True)
    return wide


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """Run the demo, and yield its data directory and its access token."""
    process = subprocess.Popen([PROGRAM, "demo"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        text = ""
        for line in process.stdout:
            text += line
            if "keeps running" in line:
                break
        found = re.search(r"SALLYPORT_DATA_DIR=(\S+)", text), re.search(r"token +(sp_\S+)", text)
        assert found[0] and found[1], text
        yield found[0][1], found[1][1]
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", nargs="?", type=Path, default=DOCS)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    with demo() as (data, token), Chromium() as chromium:
        added = subprocess.run(
            [PROGRAM, "admin", "add", "root", "--password", "-"],
            env={"SALLYPORT_DATA_DIR": data},
            input=f"{PASSWORD}\n",
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        code = TOTP(parse_uri(added.stdout.splitlines()[-1]).secret).now()  # type: ignore[union-attr]
        if asked.all:
            Furnisher(BASE, token, RADIUS).fill()
            print(*chromium.run(take_all, code, asked.directory), sep="\n")
        else:
            chromium.run(take_published, code, asked.directory)


if __name__ == "__main__":
    main()
