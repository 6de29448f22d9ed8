"""Passkeys that Chromium's virtual authenticator makes: the service and @simplewebauthn/server (npm) accept the same
registrations and assertions, and read the same of them."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import trio
from playwright.sync_api import Page, Request, expect

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.web.server import Tls
from tests.areas import SetClock, clock
from tests.areas.factors.authenticator import in_base64
from tests.areas.factors.test_me_chromium import open_link, served, sign_in
from tests.console.chromium import Chromium
from tests.peers.npm_verifiers import ask, needs_npm
from tests.peers.programs import needs
from tests.web.conftest import certificate

__all__ = ["certificate", "clock"]
pytestmark = [pytest.mark.peer, pytest.mark.system, needs("chromium"), needs_npm]


@dataclass(frozen=True)
class Exchange:
    """The options that a page had, and the response that the browser has sent."""

    options: Any
    response: Any


def add_authenticator(page: Page, kind: dict[str, object]) -> None:
    """Give the browser an authenticator with these options, beside those of every authenticator here."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {"hasResidentKey": True, "hasUserVerification": True, "isUserVerified": True, **kind}
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": {"automaticPresenceSimulation": True, **options}})


def registers_and_signs_in(page: Page, link: str, kind: dict[str, object]) -> tuple[Exchange, Exchange]:
    """Register a passkey by a link, sign out, and sign in with it. Return both exchanges."""
    responses, options = list[Any](), list[Any]()

    def keep(request: Request) -> None:
        credential = dict(parse_qsl(request.post_data or "")).get("credential")
        if request.method == "POST" and credential:
            responses.append(json.loads(credential))

    def read_options() -> None:
        options.append(json.loads(page.locator("form[data-passkey]").get_attribute("data-options") or ""))

    page.on("request", keep)
    add_authenticator(page, kind)
    open_link(page, link)
    page.get_by_role("button", name="Add a passkey").click()
    read_options()
    page.get_by_role("button", name="Make the passkey").click()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, page.url)
    page.get_by_role("button", name="Use a passkey").wait_for()
    read_options()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Passkeys")).to_be_visible()
    made, used = map(Exchange, options, responses)
    return made, used


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({"protocol": "ctap2", "transport": "internal"}, id="of the platform"),
        pytest.param(
            {
                "protocol": "ctap2",
                "transport": "internal",
                "defaultBackupEligibility": True,
                "defaultBackupState": True,
            },
            id="synchronised",
        ),
        pytest.param({"protocol": "ctap2", "ctap2Version": "ctap2_1", "transport": "usb"}, id="security key"),
    ],
)
async def test_another_verifier_agrees(
    tmp_path: Path, clock: SetClock, certificate: Tls, chromium: Chromium, kind: dict[str, object]
) -> None:
    """Both accept what Chromium has sent, with the same key, credential id and flags. Neither accepts it for another
    origin, host or challenge."""
    async with served(tmp_path, clock, certificate) as (areas, link):
        made, used = await trio.to_thread.run_sync(partial(chromium.run, registers_and_signs_in, link, kind))
        (stored,) = await areas.app.factors.passkeys.of_person(Person(areas.domain, "ann"))
    origin, host = link.partition("/me")[0], "localhost"
    registration = {"ask": "webauthnRegistration", "response": made.response, "challenge": made.options["challenge"]}
    passkey = {"id": in_base64(stored.credential_id), "key": stored.public_key.hex()}
    assertion = {"ask": "webauthnAssertion", "response": used.response, "challenge": used.options["challenge"]}
    right = {"origin": origin, "host": host}
    wrong = ({"origin": "https://evil.test"}, {"host": "evil.test"}, {"challenge": in_base64(bytes(32))})
    asked = [{**registration, **right}, {**assertion, **passkey, **right}]
    refused = [{**each, **change} for each in asked for change in wrong]
    answers = await trio.to_thread.run_sync(ask, tmp_path, [*asked, *refused])
    flags = {"fmt": "none", "backedUp": stored.backed_up, "synchronised": stored.backup_eligible}
    assert answers[:2] == [{**passkey, **flags}, True]
    assert all(isinstance(each, str) for each in answers[2:]), answers
    assert stored.backup_eligible is bool(kind.get("defaultBackupEligibility"))
