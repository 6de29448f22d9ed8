"""A program that takes the pictures of the documentation from the console of `sallyport demo`.

    python -m tests.console.pictures [DIRECTORY] [--all]

The pictures of the documentation are WebP files with few colours, a third as large as PNG files.

With --all, it takes every page of the console instead, filled with data: light and dark, wide and 360 px narrow, to be
looked at one by one. It finds the pages by following links from Home, and sends forms for the pages that answer a form.
It lists the pages without such a link, and those that are wider than the window. It uses the default ports of the demo.
"""

import argparse
import re
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, expect
from pyotp import TOTP, parse_uri

from sallyport.console.pages import ALL
from tests.console.chromium import Chromium
from tests.console.furnished import Furnisher
from tests.console.visitor import PASSWORD
from tests.running_service import PROGRAM

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "console" / "pictures"
BASE, RADIUS = "http://127.0.0.1:8080", 1812


@dataclass(frozen=True)
class Form:
    """A form of a page: the address of the page, the text for each label, and the button.

    is_list: whether the page is a list, whose first link is opened.
    """

    path: str
    texts: dict[str, str] = field(default_factory=dict)
    button: str = ""
    is_list: bool = False

    def send(self, page: Page) -> None:
        """Open the page, and send the form. Without a button, only open the page."""
        page.goto(BASE + self.path)
        for label, text in self.texts.items():
            page.get_by_label(label, exact=True).fill(text)
        if self.button:
            page.locator("main").get_by_role("button", name=self.button, exact=True).click()
            page.wait_for_load_state()
        if self.is_list:
            heading = page.locator("h1").inner_text()
            page.locator("tbody a").first.click()
            expect(page.locator("h1")).not_to_have_text(heading)


PUBLISHED = {
    "home": Form("/"),
    "logins": Form("/logins?domain=2"),
    "login": Form("/logins?domain=2&reason=not+enrolled&appliedDecision=reject", is_list=True),
}
"""The pictures of the documentation before the demo is filled."""
FILLED = {
    "senders": Form("/senders"),
    "preview": Form("/domains/2/preview"),
    "device": Form("/devices?domain=2&search=fw1", is_list=True),
    "client": Form("/clients/2"),
    "person": Form("/people/person?domain=2&user=carol"),
    "rules": Form("/rules?domain=2"),
    "directory": Form("/directories/1?domain=2"),
    "agent": Form("/agents/2?domain=2"),
    "policy": Form("/policies/1", {"Password": "too short"}, "Check"),
    "credential": Form("/credentials/1?domain=2"),
    "tokens": Form("/tokens"),
    "audit": Form("/audit?domainId=2&search=rule"),
    "certificates": Form("/certificates?column=name&column=useText&column=stateText&column=expires&column=days"),
    "api": Form("/docs"),
}
"""The pictures of the documentation after the demo is filled."""
SENT = {
    "clients-add": Form("/clients/add", {"Name": "floor-4", "Address": "192.0.2.44"}, "Add the client"),
    "clients-settings": Form("/clients/2/settings", {"Address": "no address"}, "Save"),
    "senders-register": Form("/senders/register?address=127.0.0.77", {}, "Register"),
    "keys-add": Form("/keys/add?domain=2", {"Name": "web servers"}, "Create the key"),
    "tokens-add": Form("/tokens/add", {"Name": "reports"}, "Create the token"),
    "wallets-add": Form(
        "/wallets/add?domain=2", {"User": "erin", "Mail address": "e@example.com"}, "Register the wallet"
    ),
    "person-enrol": Form("/people/person/enrol?domain=2&user=dave", {}, "Show the QR code"),
    "policies-check": Form("/policies/1", {"Password": "too short"}, "Check"),
    "policies-accepted": Form("/policies/1", {"Password": PASSWORD}, "Check"),
    "rules-add": Form(
        "/rules/add?domain=2", {"Name": "no alice", "Users": "alice"}, "Show the effect on last week's logins"
    ),
    "first-factor": Form("/domains/2/first-factor", {"User name": "bob", "Password": "wrong"}, "Test"),
    "provider-check": Form("/domains/2/provider/check", {}, "Check"),
    "directories-edit": Form("/directories/2/edit?domain=2", {}, "Test only"),
    "directories-mapping": Form("/directories/1/mapping?domain=2", {"Mapping": "email=uid"}, "Show ten people with it"),
    "rules-tested": Form("/rules/test?domain=2&user=alice&client=fw1"),
    "not-found": Form("/nothing"),
}
"""Pages of --all that answer a form, or that no link leads to."""
STARTS = (
    "/clients/2",
    "/devices/delete?domain=2&device=1&device=2",
    "/directories/2?domain=2",
    "/domains/2",
    "/domains/2/enrolments",
    "/domains/2/first-factor",
    "/domains/2/first-factor/set?kind=ldap",
    "/domains/2/first-factor/set?kind=radius",
    "/domains/2/first-factor/set?kind=web",
    "/domains/2/mode?to=enforce",
    "/people/person?domain=2&user=carol",
    "/people/person/code?domain=2&user=alice",
    "/people/person/disconnect?domain=2&user=alice",
)
"""Addresses from which --all starts in addition to Home: pages of forms, and pages with more links than the first one
of their kind."""
Scheme = Literal["light", "dark"]
SCHEMES: Sequence[Scheme] = ("light", "dark")
WIDTH, HEIGHT, LEAST_HEIGHT, STATUS = 1180, 720, 480, 48
LINKS = "links => links.map(each => each.getAttribute('href').split('#')[0])"
BOTTOM = "Math.max(...[...document.querySelector('main').children].map(each => each.getBoundingClientRect().bottom))"
ENCODE = """async png => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, image.width, image.height);
    const pixels = new Uint32Array(data.data.buffer);
    const counts = new Map();
    for (const each of pixels) counts.set(each, (counts.get(each) ?? 0) + 1);
    const palette = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one)).slice(0, 96);
    const distance = (one, other) => [0, 8, 16].map(at => Math.abs((one >> at & 255) - (other >> at & 255)))
        .reduce((sum, each) => sum + each);
    const nearest = new Map([...counts.keys()].map(
        each => [each, palette.reduce((best, other) => distance(each, other) < distance(each, best) ? other : best)]));
    pixels.forEach((each, at) => { pixels[at] = nearest.get(each); });
    context.putImageData(data, 0, 0);
    return canvas.toDataURL("image/webp", 1).split(",")[1];
}"""
"""Encodes a PNG as WebP with its 96 most frequent colours. With the quality 1, Chromium's encoder is lossless."""


def sign_in(page: Page, seed: str) -> None:
    """Sign in as the administrator root. seed: the seed of the authenticator app."""
    code = TOTP(seed).now()
    for label, value in (("Name", "root"), ("Password", PASSWORD), ("Code of the authenticator app", code)):
        page.get_by_label(label).fill(value)
    page.get_by_label("Code of the authenticator app").press("Enter")
    page.wait_for_url(f"{BASE}/")


def take_published(page: Page, seed: str, directory: Path, token: str) -> None:
    """Take the pictures of the documentation."""
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.goto(f"{BASE}/sign-in")
    save(page, directory / "sign-in.webp", left=(WIDTH - 460) // 2, width=460)
    sign_in(page, seed)
    for name, form in PUBLISHED.items():
        form.send(page)
        save(page, directory / f"{name}.webp")
    Furnisher(BASE, token, RADIUS).fill()
    for name, form in FILLED.items():
        form.send(page)
        save(page, directory / f"{name}.webp")


def save(page: Page, path: Path, *, left: int = 0, width: int = WIDTH) -> None:
    """Write the page, at most down to its last text, with the status line below it, as a WebP file."""
    needed = page.evaluate(BOTTOM) if page.locator("main").count() else HEIGHT
    height = min(max(int(needed) + STATUS, LEAST_HEIGHT), HEIGHT)
    page.set_viewport_size({"width": WIDTH, "height": height})
    shot = page.screenshot(clip={"x": left, "y": 0, "width": width, "height": height})
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    with page.context.new_page() as blank:  # the policy of the console's pages allows no data URL
        path.write_bytes(b64decode(blank.evaluate(ENCODE, b64encode(shot).decode())))


def take_all(page: Page, seed: str, directory: Path) -> list[str]:
    """Take every page in four looks. Return the pages that are too wide, and those that no link leads to."""
    page.goto(f"{BASE}/sign-in")
    found = shoot(page, directory, "sign-in")
    sign_in(page, seed)
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
    for name, form in SENT.items():
        form.send(page)
        found += shoot(page, directory, f"sent-{name}")
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


def command(data: str, *words: str, text: str = "") -> str:
    """Run a command on the data of the demo, and return its output. text: its standard input."""
    environment = {"SALLYPORT_DATA_DIR": data}
    return subprocess.run(
        [PROGRAM, *words], env=environment, input=text, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", nargs="?", type=Path, default=DOCS)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    with demo() as (data, token), Chromium() as chromium:
        added = command(data, "admin", "add", "root", "--password", "-", text=f"{PASSWORD}\n")
        command(data, "cert", "init", "--host", "radius.example.com")
        command(data, "cert", "issue", "floor-3")
        seed = parse_uri(added.splitlines()[-1]).secret
        if asked.all:
            Furnisher(BASE, token, RADIUS).fill()
            print(*chromium.logged(take_all, seed, asked.directory)[0], sep="\n")
        else:
            chromium.logged(take_published, seed, asked.directory, token)


if __name__ == "__main__":
    main()
