"""The check of a page by axe-core: light and dark, wide and narrow."""

from functools import cache
from typing import Final, Literal

from playwright.sync_api import Page

from tests.peers.npm_verifiers import AXE

LOOKS: Final[tuple[tuple[Literal["light", "dark"], int], ...]] = (("light", 1280), ("dark", 360))
"""The colours and the widths of the window, in pixels."""
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


def violations_of(page: Page, name: str, *, must_fit: bool = True) -> list[str]:
    """Return the violations of the page that is open. name: the name of the page in them. must_fit: whether a page that
    is wider than the window is one too."""
    found = list[str]()
    page.evaluate(_program())
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        result = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
        found += [
            f"{name} {scheme} {width}: {each['id']} {each['nodes'][0]['html'][:200]}" for each in result["violations"]
        ]
        if must_fit and page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{name} {width}: the page is wider than the window")
    return found


@cache
def _program() -> str:
    return AXE.read_text("utf-8")
