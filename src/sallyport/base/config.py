"""Settings: `sallyport.toml` first, then the environment; what neither names has a default.

    data_dir = "/var/lib/sallyport"
    radius_auth_bind = "0.0.0.0:1812,[::]:1812"

A key is the setting's name here; its environment variable is the same in capitals behind SALLYPORT_.
"""

import ipaddress
import re
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from sallyport.base.errors import ConfigError
from sallyport.base.limits import DEFAULTS, HIGHEST
from sallyport.base.setting_values import (
    EGRESS_DEFAULT,
    MASTER_KEY,
    PREFIX,
    Address,
    EgressRule,
    Network,
    parse_address,
)
from sallyport.base.validation import unfit

DEFAULT_FILE = "sallyport.toml"


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _addresses(value: object) -> object:
    if isinstance(value, tuple):
        return value
    try:
        return tuple(map(parse_address, _parts(_text(value))))
    except ValueError:
        raise unfit("addresses with ports, separated by commas, such as 0.0.0.0:1812,[::]:1812") from None


def _address(value: object) -> object:
    if isinstance(value, tuple):
        return value
    try:
        return parse_address(_text(value))
    except ValueError:
        raise unfit("an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")  # noqa: TRY004  told as any other malformed value
    return value


Addresses = Annotated[tuple[Address, ...], BeforeValidator(_addresses)]


def _limits(value: object) -> object:
    """The limits that are given, and the defaults of the others."""
    given = dict(part.partition("=")[::2] for part in _parts(value)) if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise unfit("limits by name, such as domains=50, wallets=20000")
    numbers = {str(name).strip(): str(most).strip() for name, most in given.items()}
    if unknown := numbers.keys() - DEFAULTS.keys():
        raise ValueError(f"there is no limit {', '.join(sorted(unknown))}; the limits are {', '.join(DEFAULTS)}")
    if not all(re.fullmatch("[0-9]{1,12}", most) for most in numbers.values()):
        raise unfit(f"limits that are integers from 0 to {HIGHEST - 1}")
    return {**DEFAULTS, **{name: int(most) for name, most in numbers.items()}}


Limits = Annotated[Mapping[str, int], BeforeValidator(_limits)]


def _egress(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        rules = [part if part == EGRESS_DEFAULT else ipaddress.ip_network(part) for part in _parts(value)]
    except ValueError:
        raise unfit("default, or networks, separated by commas, such as default, 10.0.0.0/8, 2001:db8::/32") from None
    return tuple(rules) or (EGRESS_DEFAULT,)


def _networks(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return tuple(map(ipaddress.ip_network, _parts(value)))
    except ValueError:
        raise unfit("networks, separated by commas, such as 10.0.0.0/8,2001:db8::/32") from None


def _words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


def _numbers(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_parts(value)) or None


Numbers = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_numbers)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_networks)]
EgressRules = Annotated[tuple[EgressRule, ...], BeforeValidator(_egress)]


def _hosts(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_parts(value.lower()))


Hosts = Annotated[tuple[str, ...], BeforeValidator(_hosts)]
OneAddress = Annotated[Address, BeforeValidator(_address)]
AddressIfGiven = Annotated[Address | None, BeforeValidator(lambda value: _address(value) if value else None)]


class Settings(BaseModel):
    """All settings of the service; every field has a line in the README."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    data_dir: Path = Path("./sallyport-data")
    database: str = ""
    http_bind: OneAddress = Address("127.0.0.1", 8080)
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    public_url: str = ""
    did_url: str = ""
    did_web_hosts: Hosts = ()
    metrics_bind: AddressIfGiven = None
    trusted_proxies: Networks = ()
    egress: EgressRules = (EGRESS_DEFAULT,)
    limits: Limits = DEFAULTS
    radius_auth_bind: Addresses = (Address("0.0.0.0", 1812), Address("::", 1812))
    radius_acct_bind: Addresses = (Address("0.0.0.0", 1813), Address("::", 1813))
    radsec_bind: Addresses = ()
    eap_certificate: Path | None = None
    eap_key: Path | None = None
    eap_ca: Path | None = None
    dictionaries: Path | None = None
    ntlm_auth: Path = Path("/usr/bin/ntlm_auth")
    winbind_orgs: Numbers | None = None
    duplicate_window_s: Annotated[int, Field(ge=5, le=30)] = 15
    reject_delay_s: Annotated[float, Field(ge=0, le=10)] = 1.0
    drain_s: Annotated[float, Field(ge=0, le=60)] = 5.0
    max_waiting_requests: Annotated[int, Field(ge=1)] = 16384
    lockout_failures: Annotated[int, Field(ge=0, le=1000)] = 10
    lockout_minutes: Annotated[int, Field(ge=1, le=1440)] = 15
    disk_reserve_mib: Annotated[int, Field(ge=0)] = 32
    disk_warning_mib: Annotated[int, Field(ge=0)] = 1024
    event_days: Annotated[int, Field(ge=1, le=36500)] = 90
    event_limit_mib: Annotated[int, Field(ge=1)] = 10240
    audit_days: Annotated[int, Field(ge=0, le=36500)] = 730
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "text"] = "auto"
    log_identities: Literal["clear", "hashed"] = "clear"
    log_logins: bool = True
    event_outlets: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    audit_outlets: bool = True

    @model_validator(mode="after")
    def _somebody_can_log_in(self) -> "Settings":
        if not self.radius_auth_bind and not self.radsec_bind:
            raise ValueError("radius_auth_bind and radsec_bind are both empty: nobody could log in")
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> "Settings":
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together")
        if (self.eap_certificate is None) != (self.eap_key is None):
            raise ValueError("eap_certificate and eap_key go together")
        return self

    @field_validator("database")
    @classmethod
    def _database_is_a_file(cls, value: str) -> str:
        if "://" in value:  # it may hold a password, so it is not repeated
            raise ValueError("a path; a database server is not supported yet")
        return value

    @field_validator("public_url", "did_url")
    @classmethod
    def _public_url_is_a_base(cls, value: str) -> str:
        if value and not (re.fullmatch(r"https?://[!-~]+", value) and _is_base(value)):
            raise ValueError("http:// or https://, a host, and a path where there is one")
        return value.rstrip("/")

    def link_base(self, bound: Address | None = None) -> str:
        """What links to this service begin with, without a slash at the end.

        bound: where HTTP really listens, once it does. A listener on all addresses is called by the machine's name.
        """
        if self.public_url:
            return self.public_url
        scheme, address = "https" if self.tls_certificate else "http", bound or self.http_bind
        if ipaddress.ip_address(address.host).is_unspecified:
            return f"{scheme}://{socket.gethostname()}:{address.port}"
        return f"{scheme}://{address}"

    def did_base(self, bound: Address | None = None) -> str:
        """What the addresses of DIDs, schemas and status lists begin with, as `link_base` has it."""
        return self.did_url or self.link_base(bound)

    @property
    def database_path(self) -> Path:
        """Where the embedded database lies."""
        return Path(self.database) if self.database else self.data_dir / "sallyport.db"

    @property
    def control_path(self) -> Path:
        """The socket through which the command line talks to the running service."""
        return self.data_dir / "control.sock"


def _is_base(url: str) -> bool:
    """Return whether a path can be added to a URL, and it contains no password. ValueError: no URL."""
    parts = urlsplit(url)
    return bool(parts.hostname) and parts.port != 0 and not any(mark in url for mark in "@?#")


def environment_name(setting: str) -> str:
    """The environment variable of a setting: data_dir is SALLYPORT_DATA_DIR."""
    return PREFIX + setting.upper()


def load(file: Path | None, environ: Mapping[str, str]) -> Settings:
    """Settings from a file (or ./sallyport.toml where there is one), then from the environment.

    Raises ConfigError: a file that cannot be read, an unknown key, a malformed value; values are not repeated.
    """
    values: dict[str, object] = dict(_read(file))
    known = {environment_name(name): name for name in Settings.model_fields}
    values |= {name: environ[key] for key, name in known.items() if key in environ}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError("; ".join(map(_told, error.errors()))) from None


def unknown_environment(environ: Mapping[str, str]) -> list[str]:
    """Variables that begin like settings and are none: a warning, since other programs may use the prefix too."""
    known = {environment_name(name) for name in Settings.model_fields} | {MASTER_KEY}
    return sorted(key for key in environ if key.startswith(PREFIX) and key not in known)


def _told(wrong: ErrorDetails) -> str:
    name, message = ".".join(map(str, wrong["loc"])), wrong["msg"].removeprefix("Value error, ")
    if wrong["type"] == "extra_forbidden":
        return f"there is no setting {name}"
    return f"setting {name}: {message}" if name else f"settings: {message}"


def _read(file: Path | None) -> dict[str, object]:
    path = file or Path(DEFAULT_FILE)
    if file is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
