"""A login at a Linux machine and an enrolment at the pace of a person: 0.2 s for a key, 2 s for a decision.

pam_radius is the device, and Chromium with its virtual authenticator is the browser.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page
from tabulate import tabulate

from tests.console.chromium import Chromium
from tests.peers.second_factor import PASSWORD, SECRET, populate, provide
from tests.peers.step_ups import (
    MAX_ENROLMENT_S,
    MAX_LOGIN_S,
    Person,
    enrols,
    log_in_through_pam,
    passkey,
    service_with_pages,
)
from tests.peers.test_pam_radius import configure, may_mount, module

from .settings import BenchmarkError, Settings

MAX_ROUNDS = 3
"""Maximum number of rounds: a person gets few prompts a minute."""


def run(settings: Settings) -> str:
    """Measure, and return the table. Raises BenchmarkError if pam_radius is not installed."""
    if module() is None or not may_mount():
        raise BenchmarkError("pam_radius_auth is not installed, or a mount namespace is not permitted")
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), min(settings.rounds, MAX_ROUNDS), is_slow=True)


def measure(directory: Path, rounds: int, *, is_slow: bool) -> str:
    """Do the same as `run` in an empty directory. is_slow: whether the person takes time."""
    rows = list[list[str]]()
    with service_with_pages(directory) as service, Chromium() as chromium:
        populate(service, "ann", "bob")
        provide(service, "own", binding="code", factors="passkey")
        chromium.run(_open_nothing)  # waits until the browser has started
        pam, key = configure(directory, service, SECRET, wait_s=10), passkey(service, "ann")
        for done in range(rounds):
            counted = {**key, "signCount": done}  # each round has a new authenticator, which goes on counting
            began = time.monotonic()
            _, person = log_in_through_pam(pam, chromium, "ann", PASSWORD, counted, Person(is_slow))
            rows.append(_row("login with a passkey", person, time.monotonic() - began, MAX_LOGIN_S))
            link = service.ok("user", "enrol", "bob", "--domain", "default", "--link").split()[-1]
            began = time.monotonic()
            _, person = chromium.run(enrols, link, PASSWORD, Person(is_slow))
            rows.append(_row("enrolment by a link", person, time.monotonic() - began, MAX_ENROLMENT_S))
    headers = ["", "actions", "keys", "decisions", "seconds", "limit s"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 5])


def _open_nothing(page: Page) -> None:
    page.goto("about:blank")


def _row(name: str, person: Person, seconds: float, limit: float) -> list[str]:
    counts = [str(each) for each in (person.actions, person.keys, person.decisions)]
    return [name, *counts, f"{seconds:.1f}", f"{limit:.0f}"]
