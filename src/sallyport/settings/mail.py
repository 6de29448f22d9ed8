"""The settings `smtp_*`: the server to which the service submits mail (RFC 6409), and the form of addresses."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from sallyport.base.addresses import is_host
from sallyport.base.errors import ConfigError
from sallyport.base.validation import unfit

MailTls: TypeAlias = Literal["starttls", "tls", "none"]
PORTS: Final[dict[MailTls, int]] = {"starttls": 587, "tls": 465, "none": 25}
"""The default port of each mode of TLS (RFC 6409, RFC 8314)."""
MAX_ADDRESS_LENGTH: Final = 254
"""Maximum length of a mail address (RFC 5321 section 4.5.3.1.3, without the brackets)."""
MAX_SECRET_LENGTH: Final = 1024
_ADDRESS: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([A-Za-z0-9.-]+)")


@dataclass(frozen=True, slots=True)
class MailServer:
    """The server to which the service submits mail. sender: the address in From. user: empty for no authentication."""

    host: str
    port: int
    tls: MailTls
    user: str
    password_file: Path | None
    sender: str

    def password(self) -> str:
        """Return the password, as it is now in its file. Raises ConfigError if there is none."""
        return "" if self.password_file is None else secret_in(self.password_file)


def is_mail_address(text: str) -> bool:
    """Return whether a text is a mail address that the service can write to: in ASCII, without quotes and comments, and
    without an encoded word (RFC 2047), which an address cannot have."""
    found = _ADDRESS.fullmatch(text) if len(text) <= MAX_ADDRESS_LENGTH and "=?" not in text else None
    if found is None or text.endswith("."):
        return False
    return len(text.partition("@")[0]) <= 64 and is_host(found[1])


def secret_in(path: Path) -> str:
    """Return the secret in a file, without spaces at its ends. Raises ConfigError if there is none."""
    try:
        with path.open("rb") as file:
            found = file.read(4 * MAX_SECRET_LENGTH + 2).decode().strip()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not UTF-8 text") from None
    return usable_secret(found, str(path))


def usable_secret(text: str, source: str) -> str:
    """Return a secret. source: the file or the environment variable of the secret. Raises ConfigError if the text is
    empty, too long or not printable."""
    if not text or len(text) > MAX_SECRET_LENGTH or not text.isprintable():
        raise ConfigError(f"{source}: the secret must have 1 to {MAX_SECRET_LENGTH} printable characters")
    return text


def _host(value: str) -> str:
    if value and not is_host(value):
        raise unfit("must be a host name or an IP address")
    return value


def _address(value: str) -> str:
    if value and not is_mail_address(value):
        raise unfit("must be a mail address such as sallyport@example.com")
    return value


MailHost = Annotated[str, AfterValidator(_host)]
MailAddress = Annotated[str, AfterValidator(_address)]
PortIfGiven = Annotated[Annotated[int, Field(ge=1, le=65535)] | None, BeforeValidator(lambda value: value or None)]
