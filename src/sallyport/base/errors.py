"""Every error that Sallyport raises on purpose.

    SallyportError
    ├── PacketError            octets from the network that are no valid packet; dropped and counted
    ├── StartError             the service or a command cannot start; printed in one line, exit code 1
    │   ├── ConfigError        a setting is missing, unknown or malformed
    │   ├── DictionaryError    a RADIUS dictionary file, with its line
    │   ├── ClientsFileError   a clients.conf to import, with its line
    │   ├── Locked             another process owns the data directory
    │   └── Absent             no installation, or no running service, in the places that were searched
    ├── StoreError             the store failed; a RADIUS request gets no answer
    │   ├── StoreFull          no space is left on the disk of the store
    │   ├── LeaseLost          another node does the periodic work now
    │   ├── Contradiction      a write breaks a constraint of the schema; a retry would fail too
    │   └── SchemaError        the database is newer than the program, or it is no database
    ├── WireError              a malformed message between service and agent; the text names the field
    ├── ServiceAway            an agent did not reach the service, or another program answered; try later
    ├── ServiceRefused         the service has refused an agent's request; `status` is the HTTP status
    ├── HostError              a host is not as an agent needs it, or failed; goes into the agent's report
    ├── SecretError            a sealed value does not open: wrong key, or altered value
    └── Refused                the caller's mistake; `status` is the HTTP status of the answer
        ├── Invalid            400, with the wrong fields
        │   └── CredentialError  a DID, key, credential or presentation is not valid
        ├── Unauthenticated    401
        ├── Forbidden          403
        ├── NotFound           404
        ├── Conflict           409
        │   └── LimitReached   a tenant has as many rows of a kind as it may have (`base/limits.py`)
        └── TooMany            429

`web/problem.py` maps them to HTTP, once; `cli/main.py` to exit codes, once.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

INVALID_TOKEN: Final = "invalid token"  # noqa: S105  a message
"""The message for tokens and API keys that are unknown, expired, revoked or used up."""
BODY: Final = "body"
"""The field of an error that concerns the whole body."""
MISSING: Final = "is missing"
"""The message about a required field that is absent."""


class SallyportError(Exception):
    """The root; the message is for a person and never holds a secret."""


class PacketError(SallyportError):
    """Octets that are dropped. `reason` is a label of sallyport_radius_discards_total."""

    def __init__(self, message: str, reason: str = "malformed") -> None:
        super().__init__(message)
        self.reason = reason


class StartError(SallyportError):
    """The service or a command cannot begin."""


class ConfigError(StartError):
    """A setting is missing, unknown or malformed."""


class DictionaryError(StartError):
    """A RADIUS dictionary file cannot be used; the message names file and line."""


class ClientsFileError(StartError):
    """A clients.conf cannot be read; the message names file and line."""


class Locked(StartError):
    """Another process owns the data directory."""


class Absent(StartError):
    """No installation, or no running service, is where it was looked for. One that starts may be there soon."""


class StoreError(SallyportError):
    """The store did not do what it was asked; nothing of it is kept."""


class StoreFull(StoreError):
    """No space is left where the store writes."""


class Contradiction(StoreError):
    """A write breaks a constraint of the schema; a retry would fail too. It is a defect of the program."""


class SchemaError(StoreError):
    """The database is newer than this program, or belongs to another one."""


class LeaseLost(StoreError):
    """Another node does the periodic work; the transaction changes nothing."""


class WireError(SallyportError):
    """A message between the service and an agent that is not what it should be; names the field, without the value."""


class ServiceAway(SallyportError):
    """An agent did not reach the service, it is busy, or what answered is not the service. after_s: the seconds after
    which it asks to be asked again, or 0."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class ServiceRefused(SallyportError):
    """The service has refused what an agent asked for. status: of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class HostError(SallyportError):
    """Something on an agent's host is not as it has to be, or did not work; nothing was half done."""


class SecretError(SallyportError):
    """A sealed value does not open under the present keys."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A wrong field of a body. field: its path, with dots. message: a phrase for the accepted values, or with
    `is_sentence` a sentence about the error. Never holds a submitted value."""

    field: str
    message: str
    is_sentence: bool = False

    def about(self, name: str) -> str:
        """Return the message about a field whose value must not be repeated. name: as the caller knows the field."""
        if not self.is_sentence:
            return f"{name} is not accepted; give {self.message}"
        return f"{name}{'' if self.message.startswith('is ') else ':'} {self.message}"


class Refused(SallyportError):
    """The caller's mistake. details: further fields of the error body, in JSON's types."""

    status: ClassVar[int] = 400
    details: Mapping[str, object] = MappingProxyType({})


class Invalid(Refused):
    """A value that the operation does not take. fields: the wrong fields; empty if the raising code does not know the
    body."""

    def __init__(self, message: str, fields: tuple[FieldError, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields

    @classmethod
    def about(cls, message: str, *fields: str) -> "Invalid":
        """Return the refusal of these fields. message: a sentence, which each of them has."""
        return cls(message, tuple(FieldError(field, message, is_sentence=True) for field in fields))

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """The wrong fields; the whole body if no field is named."""
        return self.fields or (FieldError(BODY, str(self), is_sentence=True),)


def invalid_field(field: str, accepted: str) -> Invalid:
    """Return the refusal of one field. accepted: the values that the field takes."""
    return Invalid(f"invalid {field}", (FieldError(field, accepted),))


@contextmanager
def in_field(field: str) -> Iterator[None]:
    """Name the field in each Invalid of this block that names none: its code does not know the body."""
    try:
        yield
    except Invalid as error:
        error.fields = error.fields or (FieldError(field, str(error), is_sentence=True),)
        raise


class CredentialError(Invalid):
    """A DID, a key, a credential or a presentation that does not hold. `reason` is a label of a metric, and one of
    `malformed`, `signature`, `issuer`, `holder`, `claims`, `expired`, `not_yet_valid`, `revoked`, `status`, `nonce`,
    `audience`, `unresolved`."""

    def __init__(self, message: str, reason: str = "malformed") -> None:
        super().__init__(message)
        self.reason = reason


class Unauthenticated(Refused):
    """No token, or one that is unknown, expired or revoked."""

    status = 401


class Forbidden(Refused):
    """A role or a scope that the token does not have."""

    status = 403


class NotFound(Refused):
    """An identifier that names nothing in the caller's tenant."""

    status = 404


class Conflict(Refused):
    """The request contradicts the present state."""

    status = 409


class LimitReached(Conflict):
    """A tenant has as many rows of a kind as it may have. 409, not 429: a later retry fails too, until rows are
    deleted or the limit is raised."""

    def __init__(self, name: str) -> None:
        super().__init__(f"limit reached: {name}; delete some, or let the installation raise the setting limits.{name}")


class TooMany(Refused):
    """The caller has reached a rate limit."""

    status = 429
