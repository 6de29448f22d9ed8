"""The values of settings that the login path and the protocols use. Unlike `config`, this module does not import
pydantic."""

import ipaddress
from typing import Final, Literal, NamedTuple

PREFIX: Final = "SALLYPORT_"
SECRET_PREFIX: Final = f"{PREFIX}SECRET_"
"""The beginning of the names of variables that the files of `sallyport apply` may name as secrets."""
"""Prefix of all environment variables."""
MASTER_KEY: Final = "SALLYPORT_MASTER_KEY"
"""Environment variable of the master key. The settings file cannot contain the key, because it is a secret."""
MASTER_KEY_FILE: Final = f"{MASTER_KEY}_FILE"
"""Environment variable of a file with the master key."""
CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
"""Environment variable of the directory with the credentials that systemd passes to a unit (systemd.exec(5))."""
EGRESS_DEFAULT: Final = "default"
"""Entry of the setting `egress` that allows all addresses except the addresses that `outgoing/egress.py` excludes."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
EgressRule = Literal["default"] | Network
ANYWHERE: Final = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))


class Address(NamedTuple):
    """An IP address (text, without brackets) and a port. With port 0, the system chooses the port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def environment_name(setting: str) -> str:
    """Return the environment variable of a setting: SALLYPORT_DATA_DIR for data_dir."""
    return PREFIX + setting.upper()


def parse_address(text: str) -> Address:
    """Parse an address such as `192.0.2.1:1812` or `[2001:db8::1]:1812`. Raises ValueError if the text is malformed."""
    host, _, port = text.strip().rpartition(":")
    if host == "localhost":
        host = "127.0.0.1"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("put an IPv6 address in brackets")
    ipaddress.ip_address(host)
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError("the port must be a number up to 65535")
    return Address(host, int(port))
