"""Tests of the registry of providers: built-in providers and plug-ins."""

from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import structlog

from sallyport.areas.mfa.fields import TotpFields, WalletFields
from sallyport.areas.mfa.host import Fields
from sallyport.areas.mfa.provider import Answer, Code, Outcome, ProviderError
from sallyport.areas.mfa.providers import BUILT_IN, GROUP, _is_provider, available
from sallyport.areas.mfa.totp import Totp
from sallyport.areas.mfa.wallet import Wallet, _number
from tests.areas.mfa.host import make_host, question


class Acme(Totp):
    """A provider of another package."""

    name: ClassVar[str] = "acme"


class Usurper(Totp):
    """A plug-in with the name of a built-in provider."""

    name: ClassVar[str] = "duo"


class Half:
    """A class that is not a provider."""

    name = "half"
    fields = Fields


def point(name: str, value: str) -> EntryPoint:
    """Return an entry point of a package."""
    return EntryPoint(name, value, GROUP)


def test_built_in_providers_are_registered() -> None:
    """Each built-in provider is registered once, under its own name."""
    names = [provider.name for provider in BUILT_IN]
    assert {"totp", "duo", "okta", "webhook", "radius"} <= set(names)
    assert len(names) == len(set(names))
    assert list(available([])) == names


def test_a_plug_in_is_registered() -> None:
    """An entry point adds a provider.

    If an entry point is broken, is not a provider class or has a name that is already used, it is ignored and logged.
    """
    points = [
        point("acme", "tests.areas.mfa.test_providers:Acme"),
        point("acme-again", "tests.areas.mfa.test_providers:Acme"),
        point("usurper", "tests.areas.mfa.test_providers:Usurper"),
        point("half", "tests.areas.mfa.test_providers:Half"),
        point("gone", "tests.areas.mfa.test_providers:Gone"),
        point("missing", "no.such.module:X"),
        point("module", "tests.areas.mfa.test_providers"),
    ]
    with structlog.testing.capture_logs() as logs:
        found = available(points)
    assert found["acme"] is Acme
    assert set(found) == {provider.name for provider in BUILT_IN} | {"acme"}
    assert [entry["entry_point"] for entry in logs] == ["acme-again", "usurper", "half", "gone", "missing", "module"]


NEEDED = ("name", "fields", "asks_for_codes", "enrolled", "start", "poll", "verify", "cancel", "aclose")
ACME = {name: getattr(Acme, name) for name in NEEDED}


@pytest.mark.parametrize(
    "changes",
    [{name: None} for name in ACME] + [{"name": ""}, {"fields": dict}, {"fields": "Fields"}, {"asks_for_codes": 1}],
    ids=str,
)
def test_a_plug_in_that_is_no_provider(changes: dict[str, object]) -> None:
    """A class without one of the methods or attributes of a provider is left out when the service starts. Otherwise a
    login would find out."""
    assert _is_provider(type("Made", (), ACME))
    assert not _is_provider(type("Made", (), {**ACME, **changes}))
    assert not _is_provider(Acme(TotpFields(), make_host()))


def test_what_can_be_typed() -> None:
    """With some providers, a user may type a code after the password. Some of these have nothing but codes."""
    assert {each.name for each in BUILT_IN if not each.asks_for_codes} == {"webhook", "wallet"}
    assert {each.name for each in BUILT_IN if getattr(each, "only_codes", False) is True} == {"totp", "radius"}


async def test_a_wallet_takes_no_code() -> None:
    """The user reads why."""
    wallet = Wallet(WalletFields(issuerDid="did:web:id.example.com"), make_host())
    assert await wallet.verify(question(), Code("123456"), "") == Answer(Outcome.DENIED, text="codes are not used here")


def test_only_built_in_providers_without_plug_ins() -> None:
    """If no other package adds a provider, the registry has only the built-in ones."""
    assert set(available()) >= {provider.name for provider in BUILT_IN}


@pytest.mark.parametrize("handle", ["", "x", "-1", "1 ", "\u0661", "1" * 19])
def test_a_handle_that_is_not_from_the_wallet(handle: str) -> None:
    """A handle names a presentation request by its number, which fits into the database."""
    assert _number("9" * 18) == 10**18 - 1
    with pytest.raises(ProviderError, match="names no presentation request"):
        _number(handle)
