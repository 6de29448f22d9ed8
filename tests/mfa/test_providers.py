"""Which providers there are."""

from importlib.metadata import EntryPoint
from typing import ClassVar

import structlog

from sallyport.mfa.host import Fields
from sallyport.mfa.providers import BUILT_IN, GROUP, available
from sallyport.mfa.totp import Totp


class Acme(Totp):
    """A provider of another package."""

    name: ClassVar[str] = "acme"


class Usurper(Totp):
    """A provider of another package with the name of a built-in one."""

    name: ClassVar[str] = "duo"


class Half:
    """Not a provider."""

    name = "half"
    fields = Fields


def point(name: str, value: str) -> EntryPoint:
    """An entry point as a package has it."""
    return EntryPoint(name, value, GROUP)


def test_ours() -> None:
    """Every provider of ours is there by its own name, once."""
    names = [provider.name for provider in BUILT_IN]
    assert {"totp", "duo", "okta", "webhook", "radius"} <= set(names)
    assert len(names) == len(set(names))
    assert list(available([])) == names


def test_those_of_others() -> None:
    """An entry point adds a provider. A broken one, a class that is none and a name in use are left out and logged."""
    points = [
        point("acme", "tests.mfa.test_providers:Acme"),
        point("acme-again", "tests.mfa.test_providers:Acme"),
        point("usurper", "tests.mfa.test_providers:Usurper"),
        point("half", "tests.mfa.test_providers:Half"),
        point("gone", "tests.mfa.test_providers:Gone"),
        point("missing", "no.such.module:X"),
        point("module", "tests.mfa.test_providers"),
    ]
    with structlog.testing.capture_logs() as logs:
        found = available(points)
    assert found["acme"] is Acme
    assert set(found) == {provider.name for provider in BUILT_IN} | {"acme"}
    assert [entry["entry_point"] for entry in logs] == ["acme-again", "usurper", "half", "gone", "missing", "module"]


def test_installed_packages() -> None:
    """Without any package of others there are ours."""
    assert set(available()) >= {provider.name for provider in BUILT_IN}
