"""What the doctor says of the provider `own` and of the devices of its domain."""

from typing import cast

import pytest

from sallyport.base.errors import NotFound
from sallyport.base.wire import Row
from sallyport.cli.checks.model import Examination, Level
from sallyport.cli.checks.service import _of_own
from sallyport.shell.command import CommandLine


class Answers:
    """A command line whose service has one domain with this provider, and devices of these products."""

    def __init__(self, provider: Row | None, *products: str) -> None:
        self._provider = provider
        self._devices = [{"nas_device_type": each} for each in products]

    def run(self, operation: str, body: Row | None = None, *, domain: str) -> Row:
        """Return the answer of an operation."""
        assert domain == "1"
        if operation == "/network_device/ListDevices":
            return {"network_devices": list(self._devices)}
        if self._provider is None:
            raise NotFound("the domain has no MFA provider")
        return self._provider


def findings(provider: Row | None, *products: str) -> list[str]:
    """Return the warnings about the domain."""
    examination = Examination(cast(CommandLine, Answers(provider, *products)))
    found = list(_of_own(examination, {"domainId": 1, "domainName": "corp"}))
    assert all(each.level is Level.WARNING for each in found)
    return [each.text for each in found]


def own(binding: str, factors: str = "passkey,totp") -> Row:
    """Return a provider as GetMFAProvider shows it."""
    return {"provider": "own", "binding": binding, "factors": factors}


def test_devices_that_cannot_have_the_binding_are_named() -> None:
    """The warning names the products, and what is left for their users."""
    (text,) = findings(own("code"), "hostapd", "Cisco ASA", "strongSwan", "SonicWall", "hostapd")
    assert text.startswith("corp: the binding code is not possible with hostapd, strongSwan: their users can only")


@pytest.mark.parametrize(
    ("provider", "products"),
    [
        pytest.param(None, ("hostapd",), id="no provider"),
        pytest.param({"provider": "totp"}, ("hostapd",), id="another provider"),
        pytest.param(own("code", "totp,bypass"), ("hostapd",), id="codes need no page"),
        pytest.param(own("unbound") | {"pageByMail": True}, ("hostapd",), id="by mail"),
        pytest.param(own("address"), ("Cisco ASA", "Unknown"), id="possible"),
    ],
)
def test_nothing_to_warn_of(provider: Row | None, products: tuple[str, ...]) -> None:
    """No warning if each known product can have the binding."""
    assert findings(provider, *products) == []
