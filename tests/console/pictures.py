"""A program that takes the pictures of the documentation from the console of `sallyport demo`.

    python -m tests.console.pictures [DIRECTORY] [--all]

With --all, it takes each picture light and dark, wide and 360 px narrow, to be looked at one by one. It uses the
default ports of the demo.
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

from tests.console.chromium import Chromium
from tests.console.visitor import PASSWORD
from tests.service import PROGRAM

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "console" / "pictures"
BASE = "http://127.0.0.1:8080"
PAGES = {
    "home": "/",
    "logins": "/logins?domain=2",
    "login": "/logins?domain=2&reason=not+enrolled&appliedDecision=reject",
    "senders": "/senders",
    "register": "/senders/register?address=192.0.2.77",
    "sessions": "/account",
    "tenants": "/tenants",
}
"""The address of each picture. Of a login, it is the address of a list, whose first login is opened."""
PUBLISHED = ("home", "logins", "login", "senders")
Scheme = Literal["light", "dark"]
LOOKS: Sequence[tuple[str, Scheme, int]] = (("", "light", 1100), ("-dark", "dark", 1100), ("-narrow", "light", 360))


def take(page: Page, code: str, directory: Path, names: Sequence[str], looks: int) -> None:
    """Take the pictures of pages in several looks."""
    page.set_viewport_size({"width": 1100, "height": 660})
    page.goto(f"{BASE}/sign-in")
    page.screenshot(path=directory / "sign-in.png", clip={"x": 340, "y": 20, "width": 420, "height": 640})
    for label, value in (("Name", "root"), ("Password", PASSWORD), ("Code of the authenticator app", code)):
        page.get_by_label(label).fill(value)
    page.get_by_label("Code of the authenticator app").press("Enter")
    page.wait_for_url(f"{BASE}/")
    for suffix, scheme, width in LOOKS[:looks]:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 660})
        for name in names:
            page.goto(BASE + PAGES[name])
            if name == "login":
                page.locator("tbody a").first.click()
                page.get_by_role("heading", name="Steps").wait_for()
            page.screenshot(path=directory / f"{name}{suffix}.png", full_page=width == 360)


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
    with demo() as (data, _), Chromium() as chromium:
        added = subprocess.run(
            [PROGRAM, "admin", "add", "root", "--password", "-"],
            env={"SALLYPORT_DATA_DIR": data},
            input=f"{PASSWORD}\n",
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        code = TOTP(parse_uri(added.stdout.splitlines()[-1]).secret).now()  # type: ignore[union-attr]
        names = tuple(PAGES) if asked.all else PUBLISHED
        chromium.run(take, code, asked.directory, names, len(LOOKS) if asked.all else 1)


if __name__ == "__main__":
    main()
