"""The command settings.show."""

import pytest

from sallyport.deploy.operations import local_operations, without_secrets
from sallyport.settings.settings import Settings
from sallyport.shell.command import Commands, entries


async def test_each_setting_is_shown_without_passwords() -> None:
    """The command returns every setting and every limit. The password of the database is hidden."""
    settings = Settings(database="postgresql://ann:hunter2@db/sallyport?sslpassword=hunter3&sslmode=require")
    found = entries(await Commands([local_operations(lambda: settings)]).ready("settings.show", {})())
    by_name = {each["name"]: each for each in found}
    assert set(Settings.model_fields) - {"limits"} <= by_name.keys()
    assert by_name["database"]["value"] == "postgresql://ann:***@db/sallyport?sslpassword=***&sslmode=require"
    assert (by_name["database"]["isSet"], by_name["workers"]["isSet"]) == (True, False)
    assert int(str(by_name["limits.domains"]["value"])) == settings.limits["domains"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("file:///var/log/logins.json syslog+tls://log:6514?ca=/etc/ca", None),
        ("syslog+tls://log:6514?token=abc tcp://u:p@h:1", "syslog+tls://log:6514?token=*** tcp://u:***@h:1"),
        ("postgresql://ann@db/s", None),
        ("127.0.0.1:8080,[::1]:8080", None),
        ("tcp://[x", "***"),
    ],
    ids=["outlets", "secrets of outlets", "name alone", "addresses", "no URL"],
)
def test_secrets_in_urls_are_hidden(value: str, expected: str | None) -> None:
    """Passwords and keys in the URLs of a setting are replaced; everything else stays."""
    assert without_secrets(value) == (expected or value)
