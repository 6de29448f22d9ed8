"""The setting `identity_providers`: its form in the settings file, and what is refused."""

from pathlib import Path

import pytest

from sallyport.base.errors import ConfigError
from sallyport.settings.identity_provider import IdentityProvider
from sallyport.settings.settings import load

ROLES = 'roles = [{ group = "a", role = "admin", org = 1, tenant = 2 }, { group = "b", role = "installation" }]'
WHOLE = f"""
[identity_providers.company]
issuer = "https://id.example.com/realms/company"
client_id = "sallyport"
client_secret_file = "/etc/sallyport/company-secret"
scopes = "openid profile groups"
{ROLES}
"""


def loaded(directory: Path, text: str) -> IdentityProvider:
    """Return the provider of a settings file."""
    file = directory / "sallyport.toml"
    file.write_text(text)
    return load(file, {}).identity_providers["company"]


def test_a_provider_is_a_table(tmp_path: Path) -> None:
    """The first entry whose group the person has gives the role."""
    provider = loaded(tmp_path, WHOLE)
    assert provider.scopes == ("openid", "profile", "groups")
    assert provider.role_of({"b", "a"}) == provider.roles[0]
    assert provider.role_of({"b"}) == provider.roles[1]
    assert provider.role_of({"c"}) is None


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("https://id.example.com", "http://id.example.com", "company.issuer must be an https URL"),
        ("https://id.example.com", "https://user@id.example.com", "company.issuer must be an https URL"),
        ("company]", "Company]", "characters of a-z"),
        ('"/etc/sallyport/company-secret"', '"company-secret"', "absolute path"),
        ('client_secret_file = "/etc/sallyport/company-secret"', "", "set one of client_secret_file"),
        ("client_id", 'client_secret_env = "A"\nclient_id', "set one of client_secret_file"),
        ("openid profile", "profile", "and contain openid"),
        ("org = 1, ", "", "org and tenant are required"),
        ('"installation"', '"installation", org = 1, tenant = 1', "not for installation"),
        ('"installation"', '"root"', "company.roles.1.role must be"),
        (ROLES, "roles = []", "company.roles must have at least 1"),
        ("client_id", "colour = 1\nclient_id", "there is no setting identity_providers.company.colour"),
        (WHOLE, WHOLE + WHOLE.replace("company]", "other]"), "two identity providers have the same issuer"),
    ],
)
def test_a_wrong_value_is_refused(tmp_path: Path, before: str, after: str, why: str) -> None:
    """The message names the setting, the accepted values and the line, and never the value."""
    assert before in WHOLE
    with pytest.raises(ConfigError, match="identity_providers") as refused:
        loaded(tmp_path, WHOLE.replace(before, after, 1))
    assert why in str(refused.value)
    assert "sallyport.toml, line 2" in str(refused.value)
    assert "id.example.com" not in str(refused.value)


def test_the_environment_is_refused() -> None:
    """Identity providers are only in the file."""
    with pytest.raises(ConfigError, match="only in the settings file"):
        load(None, {"SALLYPORT_IDENTITY_PROVIDERS": "company"})


def test_a_secret_is_read_when_it_is_used(tmp_path: Path) -> None:
    """A rotated secret needs no restart, and a missing one is an error that names the file."""
    provider = loaded(tmp_path, WHOLE.replace("/etc/sallyport/company-secret", str(tmp_path / "secret")))
    with pytest.raises(ConfigError, match="secret: No such file"):
        provider.secret()
    for text in ("first\n", "second"):
        (tmp_path / "secret").write_text(text)
        assert provider.secret() == text.strip()
    (tmp_path / "secret").write_text("two\nlines")
    with pytest.raises(ConfigError, match="printable"):
        provider.secret()
