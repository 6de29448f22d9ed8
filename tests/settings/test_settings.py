"""Settings from a file and from the environment. Errors name the setting but not its value."""

from pathlib import Path

import pytest

from sallyport.base.errors import ConfigError
from sallyport.host.systemd import DATA_DIR
from sallyport.settings.limits import DEFAULTS
from sallyport.settings.settings import Settings, load, of_service, unknown_environment
from sallyport.settings.values import Address, parse_address


def settings_of(tmp_path: Path, text: str, **environ: str) -> Settings:
    """Return the settings that a file and environment variables give."""
    path = tmp_path / "sallyport.toml"
    path.write_text(text)
    return load(path, environ)


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    """A setting of the file overrides its default."""
    text = 'http_bind = "127.0.0.1:1"\nreject_delay_s = 2'
    found = settings_of(tmp_path, text, SALLYPORT_HTTP_BIND="[::1]:2", SALLYPORT_EGRESS="10.0.0.0/8, 2001:db8::/32")
    assert (found.http_bind, found.reject_delay_s) == (Address("::1", 2), 2.0)
    assert [str(rule) for rule in found.egress] == ["10.0.0.0/8", "2001:db8::/32"]
    assert found.radius_auth_bind == (Address("0.0.0.0", 1812), Address("::", 1812))


@pytest.mark.parametrize(("text", "port"), [("", 587), ('smtp_tls = "tls"', 465), ("smtp_port = 2525", 2525)])
def test_the_port_of_mail_follows_from_tls(tmp_path: Path, text: str, port: int) -> None:
    """An own port overrides the default. Without smtp_host, there is no server."""
    server = settings_of(tmp_path, f'smtp_host = "mail.example.com"\nsmtp_from = "a@example.com"\n{text}').mail_server
    assert server is not None
    assert server.port == port
    assert settings_of(tmp_path, text).mail_server is None


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        pytest.param("[limits]\ndomains = 5\nwallets = 0", {}, id="file"),
        pytest.param("[limits]\nschemas = 1", {"SALLYPORT_LIMITS": " domains=5, wallets = 0 "}, id="environment"),
    ],
)
def test_limits_are_given_by_name(tmp_path: Path, text: str, environ: dict[str, str]) -> None:
    """Limits that are not given keep their defaults."""
    assert settings_of(tmp_path, text, **environ).limits == {**DEFAULTS, "domains": 5, "wallets": 0}


def test_a_setting_may_have_several_addresses(tmp_path: Path) -> None:
    """Several addresses are separated by commas and spaces. Some settings may be empty."""
    found = settings_of(
        tmp_path, 'radius_auth_bind = " 127.0.0.1:1812 , [::1]:1812,"\nradius_acct_bind = ""\nmetrics_bind = ""'
    )
    assert found.radius_auth_bind == (Address("127.0.0.1", 1812), Address("::1", 1812))
    assert (found.radius_acct_bind, found.metrics_bind) == ((), None)
    people = 'people_bind = "127.0.0.1:8443, [::1]:8443"\npublic_url = "https://login.example.org"'
    assert settings_of(tmp_path, people).people_bind == (Address("127.0.0.1", 8443), Address("::1", 8443))
    assert settings_of(tmp_path, 'people_bind = ""').people_bind is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hunter2 = 1", "there is no setting hunter2"),
        ('[http]\nbind = "hunter2"', "there is no setting http"),
        ('http_bind = "hunter2"', "setting http_bind must be an IP address and a port"),
        ('http_bind = "127.0.0.1"', "setting http_bind must be an IP address and a port"),
        ('http_bind = "::1:80"', "setting http_bind must be an IP address and a port"),
        ('http_bind = "127.0.0.1:65536"', "setting http_bind must be an IP address and a port"),
        ('http_bind = ""', "setting http_bind must be an IP address and a port"),
        ("http_bind = 8080", "setting http_bind must be an IP address and a port"),
        ('metrics_bind = "hunter2"', "setting metrics_bind must be an IP address and a port"),
        ('people_bind = "127.0.0.1:1"', "settings: people_bind needs public_url: the https URL"),
        (
            'people_bind = "127.0.0.1:1"\npublic_url = "http://h"',
            "settings: people_bind needs public_url: the https URL",
        ),
        ('radius_auth_bind = "127.0.0.1:1 hunter2"', "setting radius_auth_bind must be IP addresses with ports"),
        ('radius_auth_bind = ["hunter2"]', "setting radius_auth_bind must be IP addresses with ports"),
        ('radius_auth_bind = ""', "settings: radius_auth_bind and radsec_bind are both empty"),
        ('egress = "hunter2"', "setting egress must be networks separated by commas, or default"),
        ('egress = "10.0.0.0/33"', "setting egress must be networks separated by commas, or default"),
        ("[limits]\ndomain = 1", "setting limits: there is no limit domain; the limits are access_tokens, "),
        ("[limits]\ndomains = -1", "setting limits must have whole numbers as values, from 0"),
        ("[limits]\ndomains = true", "setting limits must have whole numbers as values, from 0"),
        ('limits = "domains"', "setting limits must have whole numbers as values, from 0"),
        ("limits = 5", "setting limits must be limits by name"),
        ("reject_delay_s = 11", "setting reject_delay_s must be "),
        ('log_level = "hunter2"', "setting log_level must be "),
        ('log_levels = "login"', "login: must be AREA=LEVEL, such as login=debug"),
        ('log_levels = "logins=debug"', "unknown area logins; the areas are agent, "),
        ('log_levels = { login = "loud" }', "the level of login must be one of debug, info, warning, error"),
        (
            'database = "mysql://u:hunter2@h/d"',
            "setting database must be a path, or a URL that begins with postgresql://",
        ),
        ('tls_key = "hunter2"', "settings: tls_certificate and tls_key go together"),
        ('profile_key = "hunter2"', "settings: profile_certificate and profile_key go together"),
        ('smtp_host = "hunter2 "', "setting smtp_host must be a host name or an IP address"),
        ('smtp_host = "hunter2"', "settings: smtp_host needs smtp_from"),
        ('smtp_from = "hunter2@a.org\\nBcc: b@c.org"', "setting smtp_from must be a mail address such as"),
        ("smtp_port = 65536", "setting smtp_port must be "),
        ('smtp_user = "hunter2"', "settings: smtp_user and smtp_password_file go together"),
        (
            'smtp_user = "hunter2"\nsmtp_password_file = "/hunter2"\nsmtp_tls = "none"',
            "settings: smtp_tls = none would send the password",
        ),
        ("lockout_failures = -1\ndrain_s = 61", "; setting lockout_failures must be "),
    ],
)
def test_all_wrong_settings_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_of(tmp_path, text)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value).replace("no setting hunter2", "")


def test_a_wrong_setting_has_its_line_in_the_file(tmp_path: Path) -> None:
    """The error for an unknown setting names it and the most similar setting."""
    with pytest.raises(ConfigError) as refused:
        settings_of(tmp_path, "# mine\ndrain_s = 5\n\nhttp_bnid = 1\n")
    assert str(refused.value).endswith('sallyport.toml, line 4). Did you mean "http_bind"?')
    with pytest.raises(ConfigError) as refused:
        settings_of(tmp_path, "\ndrain_s = 61\n")
    assert str(refused.value).endswith(
        " must be a number of at most 60 (" + str(tmp_path / "sallyport.toml") + ", line 2)"
    )


def test_a_wrong_variable_is_named() -> None:
    """The error for a malformed variable names the variable but not its value."""
    with pytest.raises(ConfigError, match=r"^setting log_level must be debug, .* \(SALLYPORT_LOG_LEVEL\)$"):
        load(None, {"SALLYPORT_LOG_LEVEL": "hunter2"})


def test_radsec_needs_no_udp_port(tmp_path: Path) -> None:
    assert settings_of(tmp_path, 'radius_auth_bind = ""\nradsec_bind = "127.0.0.1:2083"').radius_auth_bind == ()


def test_a_missing_or_malformed_file_is_named(tmp_path: Path) -> None:
    """The default settings file does not have to exist."""
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        load(tmp_path / "nowhere.toml", {})
    with pytest.raises(ConfigError, match=r"sallyport\.toml"):
        settings_of(tmp_path, "data_dir")
    with pytest.raises(ConfigError, match=r"sallyport\.toml"):
        (tmp_path / "sallyport.toml").write_bytes(b"# \xff")
        load(tmp_path / "sallyport.toml", {})
    assert load(None, {"SALLYPORT_DRAIN_S": "7"}).drain_s == 7


@pytest.mark.parametrize(
    ("database", "absolute"),
    [
        ("own.db", f"{DATA_DIR}/own.db"),
        ("/srv/own.db", "/srv/own.db"),
        ("", ""),
        ("postgresql://sallyport@db/sallyport", "postgresql://sallyport@db/sallyport"),
    ],
)
def test_the_database_in_the_file_of_the_service(database: str, absolute: str) -> None:
    """In the file of the system service, a relative path is relative to the data directory. A URL stays as it is."""
    assert of_service({"database": database}) == {"data_dir": str(DATA_DIR), "database": absolute}


def test_the_url_of_the_database_in_a_file(tmp_path: Path) -> None:
    """The file has the URL alone. A path, an empty file and a URL in both places are refused, without the URL."""
    file = tmp_path / "url"
    environ = {"SALLYPORT_DATABASE_URL_FILE": str(file)}
    file.write_text("postgresql://sallyport:hunter2@db/sallyport\n")
    assert load(None, environ).database_url == "postgresql://sallyport:hunter2@db/sallyport"
    with pytest.raises(ConfigError, match="database and database_url_file are both set") as refused:
        load(None, {**environ, "SALLYPORT_DATABASE": "postgresql://other/db"})
    assert "hunter2" not in str(refused.value)
    for text, cause in (("own.db", "must be a URL that begins with postgresql://"), ("", "must have 1 to 1024")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=cause):
            load(None, environ)
    file.unlink()
    with pytest.raises(ConfigError, match=f"^{file}: No such file or directory$"):
        load(None, environ)


def test_unknown_variables_are_reported() -> None:
    """An unknown SALLYPORT_ variable is reported, because it may be misspelled. The variable of the master key is no
    setting, and neither are the secrets of the files of `apply`; they are not reported.
    """
    right = ("SALLYPORT_HTTP_BIND", "SALLYPORT_MASTER_KEY", "SALLYPORT_SECRET_VPN", "HOME")
    environ = dict.fromkeys(("SALLYPORT_HTTP_BNID", *right), "x")
    assert unknown_environment(environ) == ["SALLYPORT_HTTP_BNID"]


def test_an_address_is_written_as_it_is_read() -> None:
    """An IPv6 address is formatted in brackets, and localhost becomes 127.0.0.1."""
    for text in ("127.0.0.1:80", "[::1]:0"):
        assert str(parse_address(text)) == text
    assert parse_address("localhost:80") == Address("127.0.0.1", 80)
