"""Tests of the registry of providers: built-in providers and plug-ins."""

from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import structlog

from sallyport.areas.mfa.host import Fields
from sallyport.areas.mfa.provider import ProviderError
from sallyport.areas.mfa.providers import BUILT_IN, GROUP, available
from sallyport.areas.mfa.totp import Totp
from sallyport.areas.mfa.wallet import _number


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


def test_only_built_in_providers_without_plug_ins() -> None:
    """If no other package adds a provider, the registry has only the built-in ones."""
    assert set(available()) >= {provider.name for provider in BUILT_IN}


@pytest.mark.parametrize("handle", ["", "x", "-1", "1 ", "\u0661", "1" * 19])
def test_a_handle_that_is_not_from_the_wallet(handle: str) -> None:
    """A handle names a presentation request by its number, which fits into the database."""
    assert _number("9" * 18) == 10**18 - 1
    with pytest.raises(ProviderError, match="names no presentation request"):
        _number(handle)
