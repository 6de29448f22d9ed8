"""Debian's Chromium, driven by Playwright in a process of its own.

    def shows_the_page(page: Page, url: str) -> str:
        page.goto(url)
        return page.title()

    def test_it(chromium: Chromium, service: RunningService) -> None:
        assert chromium.run(shows_the_page, url) == "Sign in"

The functions run in the other process, because Playwright's synchronous API has an event loop of its own. They are
functions of a module, with arguments and results that can be pickled. Each call gets a new browser context, and fails
if the page has logged an error, such as a violation of the Content-Security-Policy.
"""

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.peers.programs import find

P = ParamSpec("P")
T = TypeVar("T")
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip
END_S = 20.0
CALL_S = 600.0
WAIT_MS = 60_000.0
"""The limit of a wait for an element. On an idle machine, the API page needs 5 s until it can be used."""


class Chromium:
    """A browser in a process of its own."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.send(None)
        self._process.join(END_S)
        self._process.kill()
        self._process.join()
        self._process.close()
        self._ours.close()

    def run(self, work: Callable[Concatenate[Page, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on a new page, and return its result. AssertionError: the function has raised, or the page has
        logged errors."""
        result, logged = self.logged(work, *args, **kwargs)
        assert not logged, f"the page has logged {logged}"
        return result

    def logged(self, work: Callable[Concatenate[Page, P], T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, list[str]]:
        """Run a function on a new page, and return its result and the errors that the page has logged. AssertionError:
        the function has raised."""
        self._ours.send((work, args, kwargs))
        assert self._ours.poll(CALL_S), f"{work.__name__} does not end"
        failed, result, logged = self._ours.recv()
        assert not failed, failed
        return result, logged


def _serve(pipe: Connection) -> None:
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=list(ARGUMENTS))
        while (asked := pipe.recv()) is not None:
            pipe.send(_run(browser, *asked))
        browser.close()


def _run(browser: Browser, work: Any, args: Any, kwargs: Any) -> tuple[str, object, list[str]]:
    context, logged = browser.new_context(ignore_https_errors=True, timezone_id="UTC"), list[str]()
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.on("console", lambda message: logged.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: logged.append(str(error)))
    try:
        return "", work(page, *args, **kwargs), logged
    except BaseException:
        shown = f"on the page {page.url}:\n{page.inner_text('body')[:2000]}"
        return f"{traceback.format_exc()}\n{shown}\nlogged: {logged}", None, logged
    finally:
        context.close()
