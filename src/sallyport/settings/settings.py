"""The settings of the service, from `sallyport.toml` and from environment variables.

    data_dir = "/var/lib/sallyport"
    radius_auth_bind = "0.0.0.0:1812,[::]:1812"

A key in the file is the name of a field of `Settings`. An environment variable has the same name in capitals, with the
prefix SALLYPORT_. Environment variables override the file.
"""

import ipaddress
import re
import socket
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from sallyport.base.errors import ConfigError, about
from sallyport.base.text import nearest
from sallyport.base.validation import described, unfit
from sallyport.host import systemd
from sallyport.host.owner import denied
from sallyport.settings.identity_provider import Providers
from sallyport.settings.limits import DEFAULTS
from sallyport.settings.mail import PORTS, MailAddress, MailHost, MailServer, MailTls, PortIfGiven, secret_in
from sallyport.settings.types import (
    Addresses,
    AddressesIfGiven,
    AddressIfGiven,
    AreaLevels,
    EgressRules,
    Hosts,
    Limits,
    Networks,
    NumbersIfGiven,
    OneAddress,
    PathIfGiven,
    Words,
    base_url,
)
from sallyport.settings.values import (
    EGRESS_DEFAULT,
    MASTER_KEY,
    MASTER_KEY_FILE,
    PREFIX,
    SECRET_PREFIX,
    Address,
    environment_name,
)

DEFAULT_DATA_DIR: Final = Path("./sallyport-data")


def unset(words: str) -> dict[str, JsonValue]:
    """Return the metadata of a settings field without a default. words: says which value is used if the setting is not
    set; this text appears in the reference and in the settings file."""
    return {"unset": words}


ON_RELOAD: Final = "on reload"
"""Metadata of the settings that a reload applies without a new process."""
SettingT = TypeVar("SettingT")
Live: TypeAlias = Annotated[SettingT, ON_RELOAD]
"""The type of a setting that a reload applies. All other settings need a restart."""
TLS_FILES: Final = frozenset({"tls_certificate", "tls_key"})
"""The settings of TLS at the addresses of HTTP. Other files apply at a reload; TLS begins and ends at a restart."""
EAP_FILES: Final = frozenset({"eap_certificate", "eap_key", "eap_ca"})
POSTGRES: Final = "postgresql://"
"""Prefix of the URL of a PostgreSQL database."""


class Settings(BaseModel):
    """All settings of the service. The descriptions appear in the reference, and in the file that `server install`
    writes."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    data_dir: Path = Field(
        DEFAULT_DATA_DIR, description="directory of the database, the keys, the certificates and the control socket"
    )
    database: str = Field(
        "",
        description="the database: a file, or `postgresql://USER@HOST/NAME`",
        json_schema_extra=unset("`sallyport.db` in `data_dir`"),
    )
    database_url_file: PathIfGiven = Field(
        None,
        description="file with the URL of the PostgreSQL database, in place of `database`, if the URL has a password",
        json_schema_extra=unset("the URL is in `database`"),
    )
    http_bind: OneAddress = Field(Address("127.0.0.1", 8080), description="address and port of the API")
    tls_certificate: Live[PathIfGiven] = Field(
        None,
        description="PEM file of the API's certificate, followed by its chain; needs `tls_key`",
        json_schema_extra=unset("plain HTTP"),
    )
    tls_key: Live[PathIfGiven] = Field(
        None,
        description="PEM file of the private key of `tls_certificate`",
        json_schema_extra=unset("plain HTTP"),
    )
    public_url: str = Field(
        "",
        description="base URL of links to this service, such as `https://sallyport.example.org` behind a proxy; a "
        "change of its host makes passkeys unusable",
        json_schema_extra=unset("from `http_bind` and TLS"),
    )
    did_url: Live[str] = Field(
        "",
        description="base URL of DIDs, schemas and status lists; do not change it, because existing DIDs contain it",
        json_schema_extra=unset("the same as `public_url`"),
    )
    did_web_hosts: Live[Hosts] = Field(
        (),
        description="hosts, separated by commas, from which did:web documents may be fetched",
        json_schema_extra=unset("none"),
    )
    metrics_bind: AddressIfGiven = Field(
        None,
        description="separate address of metrics and health, such as `127.0.0.1:9090`",
        json_schema_extra=unset("the API's address"),
    )
    people_bind: AddressesIfGiven = Field(
        None,
        description="separate addresses, such as `0.0.0.0:8443,[::]:8443`, of the pages at which people prove a second "
        "factor (`/mfa`) and manage their factors (`/me`); they have the certificate of `tls_certificate`, and need an "
        "https URL in `public_url`",
        json_schema_extra=unset("no such pages"),
    )
    metrics_tag: Live[str] = Field(
        "",
        pattern=r"^[a-z0-9_-]{0,32}$",
        description="key of a tag, such as `site`, whose value is the label `tag` of `sallyport_tagged_decisions`",
        json_schema_extra=unset("no such metric"),
    )
    console_idle_minutes: Live[int] = Field(
        30, ge=1, le=1440, description="minutes (1 to 1440) without a request after which a session of the console ends"
    )
    console_hours: Live[int] = Field(
        12, ge=1, le=168, description="hours (1 to 168) after which a session of the console ends in any case"
    )
    identity_providers: Live[Providers] = Field(
        {},
        description="identity providers whose users may sign in to the console: a table "
        "`[identity_providers.NAME]` for each; only in the file, not in the environment",
        json_schema_extra=unset("none"),
    )
    smtp_host: Live[MailHost] = Field(
        "",
        description="host of the SMTP server that sends mail to people; needs `smtp_from`",
        json_schema_extra=unset("no mail is sent"),
    )
    smtp_port: Live[PortIfGiven] = Field(
        None,
        description="port of the SMTP server",
        json_schema_extra=unset("587; 465 with `smtp_tls = tls`; 25 with `smtp_tls = none`"),
    )
    smtp_tls: Live[MailTls] = Field(
        "starttls",
        description="TLS to the SMTP server: `starttls`, without which no mail is sent; `tls` from the first octet; or "
        "`none`",
    )
    smtp_user: Live[str] = Field(
        "",
        max_length=256,
        pattern=r"^[ -~]*$",
        description="user name at the SMTP server; needs `smtp_password_file`",
        json_schema_extra=unset("no authentication"),
    )
    smtp_password_file: Live[PathIfGiven] = Field(
        None,
        description="file with the password of `smtp_user`; it is read again for each mail",
        json_schema_extra=unset("none"),
    )
    smtp_from: Live[MailAddress] = Field(
        "",
        description="address of the sender, such as `sallyport@example.com`",
        json_schema_extra=unset("none"),
    )
    trusted_proxies: Live[Networks] = Field(
        (),
        description="networks of HTTP proxies, separated by commas, whose `X-Forwarded-For` gives the client's address",
        json_schema_extra=unset("none"),
    )
    egress: Live[EgressRules] = Field(
        (EGRESS_DEFAULT,),
        description="networks that the service may connect to, separated by commas. `default` allows all addresses "
        "except loopback, link-local and the metadata addresses of clouds; `default, 127.0.0.1/32` also allows servers "
        "on the same host",
    )
    limits: Live[Limits] = Field(
        DEFAULTS,
        description="maximum number of rows of each kind that a tenant may have",
        json_schema_extra=unset("the defaults"),
    )
    radius_auth_bind: Addresses = Field(
        (Address("0.0.0.0", 1812), Address("::", 1812)),
        description="addresses of RADIUS authentication; required unless `radsec_bind` is set",
    )
    radius_acct_bind: Addresses = Field(
        (Address("0.0.0.0", 1813), Address("::", 1813)),
        description="addresses of RADIUS accounting; empty for no accounting over UDP",
    )
    radsec_bind: Addresses = Field(
        (),
        description="addresses of RADIUS over TLS, such as `0.0.0.0:2083,[::]:2083`",
        json_schema_extra=unset("none"),
    )
    eap_certificate: Live[PathIfGiven] = Field(
        None,
        description="PEM file of the server's certificate, followed by its chain, for EAP and RadSec; needs `eap_key`",
        json_schema_extra=unset("the certificate of `cert init`"),
    )
    eap_key: Live[PathIfGiven] = Field(
        None,
        description="PEM file of the private key of `eap_certificate`",
        json_schema_extra=unset("the key of `cert init`"),
    )
    eap_ca: Live[PathIfGiven] = Field(
        None,
        description="PEM file of the authorities that sign the certificates of clients, and of their revocation lists. "
        "If you set `eap_certificate` without this setting, PEAP and TTLS work, but EAP-TLS and RadSec do not",
        json_schema_extra=unset("the authority of `cert init`"),
    )
    profile_certificate: Live[PathIfGiven] = Field(
        None,
        description="PEM file of the certificate that signs configuration profiles for Apple devices, followed by its "
        "chain; needs `profile_key`",
        json_schema_extra=unset("the profiles are not signed"),
    )
    profile_key: Live[PathIfGiven] = Field(
        None,
        description="PEM file of the private key of `profile_certificate`",
        json_schema_extra=unset("the profiles are not signed"),
    )
    apply: Live[PathIfGiven] = Field(
        None,
        description="folder of configuration as code: the service applies its TOML files at the start, and after each "
        "change of them",
        json_schema_extra=unset("no such folder"),
    )
    dictionaries: PathIfGiven = Field(
        None,
        description="directory with more `dictionary*` files; they are read after the files of the package",
        json_schema_extra=unset("none"),
    )
    ntlm_auth: Live[Path] = Field(
        Path("/usr/bin/ntlm_auth"), description="Samba's program that asks winbind about MS-CHAP logins"
    )
    winbind_orgs: NumbersIfGiven = Field(
        None,
        description="numbers of the organizations, separated by commas, whose domains may use the host's winbind",
        json_schema_extra=unset("all"),
    )
    duplicate_window_s: int = Field(
        15, ge=5, le=30, description="seconds (5 to 30) for which a retransmission gets the same answer"
    )
    reject_delay_s: Live[float] = Field(
        1.0,
        ge=0,
        le=10,
        description="seconds (0 to 10) by which a reject is delayed; the timeout of a device must be longer "
        "(openvpn-auth-radius: `wait=2`)",
    )
    drain_s: Live[float] = Field(
        5.0,
        ge=0,
        le=60,
        description="seconds (0 to 60) that the service waits for pending second factors when it stops; 60 lets every "
        "user answer",
    )
    max_waiting_requests: Live[int] = Field(
        65536, ge=1, description="maximum number of requests that wait at the same time, over all RADIUS clients"
    )
    lockout_failures: Live[int] = Field(
        10,
        ge=0,
        le=1000,
        description="failures within five minutes that lock out a user or a station; 0 for no lock-outs",
    )
    enrolment_link_hours: Live[int] = Field(
        1, ge=1, le=336, description="hours (1 to 336) for which a link to enrol is valid"
    )
    lockout_minutes: Live[int] = Field(15, ge=1, le=1440, description="minutes (1 to 1440) that a lock-out lasts")
    node_name: str = Field(
        "",
        max_length=253,
        pattern=r"^[A-Za-z0-9._-]*$",
        description="name of this node; unique among the nodes of the PostgreSQL database",
        json_schema_extra=unset("the host's name"),
    )
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description="processes (1 to 64) that share the work of this machine; several need a PostgreSQL database",
    )
    accounting_spool_mib: Live[int] = Field(
        64,
        ge=0,
        le=65536,
        description="maximum MiB of accounting records that wait in `data_dir` while PostgreSQL is unreachable; 0 for "
        "none: accounting requests get no response while PostgreSQL is unreachable",
    )
    disk_reserve_mib: int = Field(
        32,
        ge=0,
        description="MiB of a reserve file next to the database; the service deletes the file if the disk is full",
    )
    disk_warning_mib: Live[int] = Field(
        1024,
        ge=0,
        description="free MiB on the database's disk below which the log warns (`disk_space_low`); 0 for never",
    )
    event_days: Live[int] = Field(
        90, ge=1, le=36500, description="days (1 to 36500) that events, accounting records and past sessions are kept"
    )
    event_limit_mib: Live[int] = Field(
        10240,
        ge=1,
        description="maximum MiB of events, accounting records and past sessions (estimated); if there are more, the "
        "oldest entries of the tenant with the most entries are deleted",
    )
    audit_days: Live[int] = Field(
        730, ge=0, le=36500, description="days (0 to 36500) that the audit trail is kept; 0 for forever"
    )
    log_level: Live[Literal["debug", "info", "warning", "error"]] = Field(
        "info", description="lowest level of log events: `debug`, `info`, `warning`, `error`"
    )
    log_levels: Live[AreaLevels] = Field(
        {},
        description="lowest level of single areas, such as `login=debug mfa=warning`, or a table in the file; an area "
        "is a folder of the source, such as `login`, `directory` or `store`",
        json_schema_extra=unset("none"),
    )
    log_format: Live[Literal["auto", "json", "text"]] = Field(
        "auto", description="`json`, `text`, or `auto`: text on a terminal, else JSON"
    )
    log_identities: Live[Literal["clear", "hashed"]] = Field(
        "clear",
        description="names of users and stations in the log and the outlets: `clear`, or `hashed` for keyed hashes; "
        "equal names have equal hashes",
    )
    log_logins: Live[bool] = Field(True, description="whether each decision is logged, at level info")
    event_outlets: Live[Words] = Field(
        (),
        description="outlets that receive each decision, separated by spaces: `file:///PATH`, `unix:///PATH`, "
        "`tcp://HOST:PORT` (JSON lines); `syslog+udp://HOST:514`, `syslog+tcp://HOST:601`, "
        "`syslog+tls://HOST:6514?ca=/PATH` (RFC 5424); with `?format=json`, syslog has the JSON object as its text",
        json_schema_extra=unset("none"),
    )
    audit_outlets: Live[bool] = Field(True, description="whether the audit trail is sent to `event_outlets` too")
    otlp_url: str = Field(
        "",
        description="address for traces of an OpenTelemetry collector, such as `http://127.0.0.1:4318/v1/traces`; it "
        "gets the spans of each login, and needs the extra `otel`",
        json_schema_extra=unset("no spans are exported"),
    )

    @model_validator(mode="after")
    def _somebody_can_log_in(self) -> "Settings":
        if not self.radius_auth_bind and not self.radsec_bind:
            raise ValueError("radius_auth_bind and radsec_bind are both empty: set one of them")
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> "Settings":
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: set both or neither")
        if (self.eap_certificate is None) != (self.eap_key is None):
            raise ValueError("eap_certificate and eap_key go together: set both or neither")
        if (self.profile_certificate is None) != (self.profile_key is None):
            raise ValueError("profile_certificate and profile_key go together: set both or neither")
        return self

    @model_validator(mode="after")
    def _mail_is_whole(self) -> "Settings":
        if self.smtp_host and not self.smtp_from:
            raise ValueError("smtp_host needs smtp_from: set the address of the sender")
        if bool(self.smtp_user) != (self.smtp_password_file is not None):
            raise ValueError("smtp_user and smtp_password_file go together: set both or neither")
        if self.smtp_user and self.smtp_tls == "none":
            raise ValueError("smtp_tls = none would send the password of smtp_user in clear text: use starttls or tls")
        return self

    @model_validator(mode="after")
    def _people_have_https(self) -> "Settings":
        if self.people_bind is not None and not self.public_url.startswith("https://"):
            raise ValueError("people_bind needs public_url: the https URL at which people open /mfa and /me")
        return self

    @field_validator("database")
    @classmethod
    def _database_is_known(cls, value: str) -> str:
        if "://" in value and not value.startswith(
            POSTGRES
        ):  # the value may contain a password, so the message omits the value
            raise unfit(f"must be a path, or a URL that begins with {POSTGRES}")
        return value

    @field_validator("public_url", "did_url", "otlp_url")
    @classmethod
    def _url_is_a_base(cls, value: str) -> str:
        return base_url(value)

    @property
    def mail_server(self) -> MailServer | None:
        """The SMTP server of the settings `smtp_*`, or None if mail is off."""
        if not self.smtp_host:
            return None
        port = self.smtp_port or PORTS[self.smtp_tls]
        return MailServer(self.smtp_host, port, self.smtp_tls, self.smtp_user, self.smtp_password_file, self.smtp_from)

    def link_base(self, bound: Address | None = None) -> str:
        """Return the base URL for links to this service, without a slash at the end.

        bound: the actual address of the HTTP listener, if this address is known. If the listener accepts connections on
        all addresses, the URL contains the host name of the machine.
        """
        if self.public_url:
            return self.public_url
        scheme, address = "https" if self.tls_certificate else "http", bound or self.http_bind
        if ipaddress.ip_address(address.host).is_unspecified:
            return f"{scheme}://{socket.gethostname()}:{address.port}"
        return f"{scheme}://{address}"

    def below(self, directory: Path) -> "Settings":
        """Return a copy of these settings with absolute paths. A relative path is taken as a path below `directory`."""
        paths = {name: directory / value for name, value in self if isinstance(value, Path)}
        database = {"database": str(directory / self.database)} if self.database and not self.database_url else {}
        return self.model_copy(update={**paths, **database})

    def addresses(self) -> Iterator[tuple[str, Address, socket.SocketKind]]:
        """Yield (name of the setting, address, kind of socket) for each address on which the service listens."""
        yield from (("radius_auth_bind", each, socket.SOCK_DGRAM) for each in self.radius_auth_bind)
        yield from (("radius_acct_bind", each, socket.SOCK_DGRAM) for each in self.radius_acct_bind)
        yield from (("radsec_bind", each, socket.SOCK_STREAM) for each in self.radsec_bind)
        yield "http_bind", self.http_bind, socket.SOCK_STREAM
        if self.metrics_bind is not None:
            yield "metrics_bind", self.metrics_bind, socket.SOCK_STREAM
        yield from (("people_bind", each, socket.SOCK_STREAM) for each in self.people_bind or ())

    @property
    def database_url(self) -> str:
        """Return the URL of the PostgreSQL database. Return "" if the database is a file."""
        return self.database if self.database.startswith(POSTGRES) else ""

    @property
    def node(self) -> str:
        """Return the name of this node."""
        return self.node_name or socket.gethostname()

    @property
    def worker(self) -> str:
        """The number of this worker; empty if the service has only one process."""
        return self.node.partition("/")[2]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the node names of all processes on this machine. The name of a worker process ends with its number."""
        whole = self.node.partition("/")[0]
        return (whole,) if self.workers == 1 else tuple([f"{whole}/{each}" for each in range(1, self.workers + 1)])

    @property
    def database_path(self) -> Path:
        """Return the path of the embedded database. With PostgreSQL, no file exists at this path."""
        is_file = self.database and not self.database_url
        return Path(self.database) if is_file else self.data_dir / "sallyport.db"

    @property
    def control_path(self) -> Path:
        """Return the path of the socket through which the command line talks to the running service."""
        return self.data_dir / "control.sock"


LIVE: Final = frozenset(name for name, field in Settings.model_fields.items() if ON_RELOAD in field.metadata)
"""The names of the settings that a reload applies."""
PATHS: Final = frozenset(
    name for name, field in Settings.model_fields.items() if Path in (field.annotation, *get_args(field.annotation))
) | {"database"}
"""The names of the settings that are paths."""


def load(file: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings from the environment and, if `file` is given, from a file. The environment overrides the
    file.

    In the settings file of the system service, paths are relative to the data directory of the service. This directory
    is then also the default of `data_dir`. Raises ConfigError if the file cannot be read, a key is unknown, or a value
    is malformed. The message never contains a value.
    """
    values = {} if file is None else _read(file)
    if file == systemd.CONFIG_FILE:
        values = of_service(values)
    known = {environment_name(name): name for name in Settings.model_fields}
    values |= {name: environ[key] for key, name in known.items() if key in environ}
    try:
        found = Settings.model_validate(values)
        path = found.database_url_file
        return found if path is None else Settings.model_validate(_with_url(values, found, path))
    except ValidationError as error:
        raise ConfigError("; ".join(_described(each, file, environ) for each in error.errors())) from None


def _with_url(values: Mapping[str, object], found: Settings, path: Path) -> dict[str, object]:
    """Return the values with the URL in the file of `database_url_file`. Raises ConfigError."""
    if found.database:
        raise ConfigError("database and database_url_file are both set: keep one of them")
    url = secret_in(path)
    if not url.startswith(POSTGRES):
        raise ConfigError(f"{path}: must be a URL that begins with {POSTGRES}")
    return {**values, "database": url}


def of_service(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values in the settings file of the system service, after relative paths were made absolute. The URL of
    a database is not changed."""
    paths = {
        name: value
        for name, value in values.items()
        if name in PATHS and isinstance(value, str) and value and "://" not in value
    }
    return {**values, **{name: str(systemd.DATA_DIR / value) for name, value in {"data_dir": ".", **paths}.items()}}


def unknown_environment(environ: Mapping[str, str]) -> list[str]:
    """Return the environment variables that have the prefix of settings, but belong to no setting, and are no secrets
    of the files of `sallyport apply`.

    The service only warns about them, because other programs may use the prefix.
    """
    known = {environment_name(name) for name in Settings.model_fields} | {MASTER_KEY, MASTER_KEY_FILE}
    unknown = (key for key in environ if key.startswith(PREFIX) and key not in known)
    return sorted(key for key in unknown if not key.startswith(SECRET_PREFIX))


def _described(wrong: ErrorDetails, file: Path | None, environ: Mapping[str, str]) -> str:
    """Return the message about a wrong setting, with the place where it is set."""
    name = ".".join(map(str, wrong["loc"]))
    if not name:
        return about("settings", _message(wrong))
    place = _place(name.partition(".")[0], file, environ)
    if wrong["type"] == "extra_forbidden":
        return f"there is no setting {name}{place}.{nearest(name, Settings.model_fields)}"
    return f"{about(f'setting {name}', _message(wrong))}{place}"


def _message(wrong: ErrorDetails) -> str:
    if wrong["type"] == "value_error":
        return wrong["msg"].removeprefix("Value error, ")
    return described(wrong)


def _place(name: str, file: Path | None, environ: Mapping[str, str]) -> str:
    """Return the place where a setting is set, for a message: ` (SALLYPORT_HTTP_BIND)` or ` (sallyport.toml, line
    3)`."""
    if environment_name(name) in environ:
        return f" ({environment_name(name)})"
    if file is None:
        return ""
    key = re.compile(rf"""\s*\[?["']?{re.escape(name)}\b""")
    lines = file.read_text(encoding="utf-8").splitlines()
    number = next((at for at, text in enumerate(lines, 1) if key.match(text)), None)
    return f" ({file}, line {number})" if number else f" ({file})"


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except PermissionError as error:
        raise ConfigError(denied(path)) from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deeply") from error
    except ValueError as error:  # of int(), which refuses very long numbers
        raise ConfigError(f"{path}: a number has too many digits") from error
