"""The table `[directory]` of the agent's configuration file."""

import re
from pathlib import Path

import pytest

from sallyport.agent import file
from sallyport.agent.directory.settings import DirectorySettings, settings_of
from sallyport.agent.templates import DirectoryPlace, directory_file
from sallyport.base.errors import ConfigError
from tests.peers.authority import Authority

GOOD = {
    "domain": "7",
    "name": '"hq"',
    "servers": '["ldaps://dc1.example", "ldaps://dc2.example:3269"]',
    "base_dn": '"dc=example"',
    "bind_dn": '"cn=reader,dc=example"',
    "bind_secret": '"hunter2"',
}


def read(tmp_path: Path, **changes: str | None) -> DirectorySettings:
    """Read a valid table in which some keys are replaced. A value of None removes the key."""
    fields = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    lines = "".join(f"{name} = {value}\n" for name, value in fields.items())
    path = tmp_path / "agent.toml"
    path.write_text(f'service = "https://s.example"\n[directory]\n{lines}')
    path.chmod(0o600)
    return settings_of(file.read(path, "directory"))


def test_valid_settings(tmp_path: Path) -> None:
    """The settings contain the servers in order, the account and the interval."""
    found = read(tmp_path, interval_minutes="10", filter='"department=sales"', attributes='["telephoneNumber"]')
    assert (found.domain_id, found.name, found.interval_s, found.full_every_s) == (7, "hq", 600, 86_400)
    assert [str(server) for server in found.source.servers] == ["ldaps://dc1.example", "ldaps://dc2.example:3269"]
    assert found.source.account is not None and found.source.account.password == "hunter2"
    assert (found.source.base, found.source.accounts) == ("dc=example", "(department=sales)")
    assert read(tmp_path, bind_dn=None, bind_secret=None).source.account is None


def test_certificates(tmp_path: Path) -> None:
    """Certificates are given in the configuration file itself or in a file that it names."""
    pem = Authority("The directory's CA").pem
    (tmp_path / "ca.pem").write_text(pem)
    for value in (f"'''{pem}'''", f'"{tmp_path}/ca.pem"'):
        assert read(tmp_path, ca_certificate=value).source.authorities == pem


@pytest.mark.parametrize(
    "value",
    ['"{}/none.pem"', '"{}/nothing"', '"-----BEGIN hunter2"', '"a\\u0000b"'],
    ids=["no certificate", "no file", "damaged", "NUL"],
)
def test_no_certificates(tmp_path: Path, value: str) -> None:
    """A value is refused if it is not PEM certificates or the name of a file with PEM certificates."""
    (tmp_path / "none.pem").write_text("no certificate")
    with pytest.raises(ConfigError, match="ca_certificate"):
        read(tmp_path, ca_certificate=value.replace("{}", str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("domain", None), ("domain", "0"), ("domain", '"7"'), ("name", None), ("name", '""'), ("servers", None),
        ("servers", "[]"), ("servers", '["hunter2"]'), ("servers", '["ldap://dc1.example"]'),
        ("servers", '["ldaps://u:hunter2@dc1.example"]'), ("servers", '"ldaps://dc1.example"'), ("base_dn", '"x"'),
        ("base_dn", None), ("bind_secret", '""'), ("bind_secret", None), ("bind_dn", None), ("filter", '"((hunter2"'),
        ("attributes", '["a b"]'), ("attributes", '["*"]'), ("interval_minutes", "0"), ("full_every_hours", "true"),
        ("start_tls", '"yes"'), ("hunter", '"hunter2"'),
    ],
)  # fmt: skip
def test_invalid_settings(tmp_path: Path, name: str, value: str | None) -> None:
    """An error names the key but not its value."""
    with pytest.raises(ConfigError, match=rf"\[directory\]: .*{re.escape(name)}") as caught:
        read(tmp_path, **{name: value})
    assert "hunter2" not in str(caught.value)


def test_start_tls_makes_an_ldap_url_good(tmp_path: Path) -> None:
    """An ldap:// URL is valid only with StartTLS or with a loopback address."""
    assert read(tmp_path, servers='["ldap://dc1.example"]', start_tls="true").source.servers[0].start_tls
    assert read(tmp_path, servers='["ldap://127.0.0.1:389"]').source.servers


@pytest.mark.parametrize("text", ['a"b', "a\\b", "ü", "a\x7fb", "#", "'''"])
def test_the_template_holds_any_name(tmp_path: Path, text: str) -> None:
    """A name with any characters is read back unchanged from the template."""
    pem = Authority("The directory's CA").pem
    known = {"servers": ["ldaps://dc1.example"], "baseDN": "dc=x", "bindDN": f"cn={text}", "caCertificate": pem}
    place = DirectoryPlace.of(known, {"directoryName": text}, "corp")
    path = tmp_path / "agent.toml"
    path.write_text(directory_file("https://s.example", "spk_x", 7, place))
    path.chmod(0o600)
    table = file.read(path, "directory").own
    assert table.long_text("name") == text
    assert table.long_text("bind_dn") == f"cn={text}"
    assert table.long_text("ca_certificate") == pem


def test_values_of_the_request_override_the_domains() -> None:
    """A value of the request overrides the value of the domain. If the request names other servers, the authority of
    the domain is not used.
    """
    known = {"servers": ["ldaps://a"], "baseDN": "dc=a", "bindDN": "cn=a", "startTls": True, "caCertificate": "pem"}
    assert DirectoryPlace.of(known, {}, "corp") == DirectoryPlace("corp", ("ldaps://a",), "dc=a", "cn=a", True, "pem")
    requested = DirectoryPlace.of(known, {"servers": ["ldaps://b"], "baseDN": "dc=b", "directoryName": "hq"}, "corp")
    assert requested == DirectoryPlace("hq", ("ldaps://b",), "dc=b", "cn=a", True, "")
    assert DirectoryPlace.of({}, {}, "corp") == DirectoryPlace("corp")
