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
    │   └── SchemaError        this program cannot use the database, such as a newer one or another program's
    ├── WireError              a malformed message between service and agent; the text names the field
    ├── ServiceAway            the service is unreachable or busy, or another program answered; the agent retries later
    ├── ServiceRefused         the service has refused an agent's request; `status` is the HTTP status
    ├── HostError              an action on an agent's host failed; the agent's report contains the message
    ├── SecretError            a sealed value does not open: wrong key, or altered value
    └── Refused                the caller's mistake; `status` is the HTTP status of the answer
        ├── Invalid            400, with the wrong fields
        │   └── CredentialError  a DID, key, credential or presentation is not valid
        ├── Unauthenticated    401
        ├── Forbidden          403
        ├── NotFound           404
        ├── Conflict           409
        │   └── LimitReached   a tenant has reached its maximum number of rows of a kind (`base/limits.py`)
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
    """The base class; the message is for people and never contains a secret."""


class PacketError(SallyportError):
    """An invalid packet, which is dropped. reason: a value of the label `reason` of sallyport_radius_discards_total."""

    def __init__(self, message: str, reason: str = "malformed") -> None:
        super().__init__(message)
        self.reason = reason


class StartError(SallyportError):
    """The service or a command cannot start."""


class ConfigError(StartError):
    """A setting is missing, unknown or malformed."""


class DictionaryError(StartError):
    """A RADIUS dictionary file cannot be used; the message names file and line."""


class ClientsFileError(StartError):
    """A clients.conf cannot be read; the message names file and line."""


class Locked(StartError):
    """Another process owns the data directory."""


class Absent(StartError):
    """No installation, or no running service, was found. If a service is starting, a retry may succeed."""


class StoreError(SallyportError):
    """An operation of the store failed. Its transaction changed nothing."""


class StoreFull(StoreError):
    """No disk space is left for the store."""


class Contradiction(StoreError):
    """A write breaks a constraint of the schema; a retry would fail too. It is a defect of the program."""


class SchemaError(StoreError):
    """This program cannot use the database: it is newer than the program, belongs to another program, or is no
    database."""


class LeaseLost(StoreError):
    """Another node does the periodic work. The transaction has changed nothing."""


class WireError(SallyportError):
    """A malformed message between the service and an agent. The text names the field, but does not contain its
    value."""


class ServiceAway(SallyportError):
    """An agent's request had no valid answer. Either the service is unreachable, or another program answered, or the
    status of the answer is at least 500 or asks for a retry, such as 429. after_s: the Retry-After of the answer in
    seconds; 0 if there is none."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class ServiceRefused(SallyportError):
    """The service has refused an agent's request. status: the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class HostError(SallyportError):
    """An action on an agent's host failed, or the host is not in the state that the action requires."""


class SecretError(SallyportError):
    """A sealed value cannot be opened with the present keys."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A wrong field of a body. field: its path, with dots. message: a phrase for the accepted values, or, if
    `is_sentence` is true, a sentence about the error. It never contains a submitted value."""

    field: str
    message: str
    is_sentence: bool = False

    def about(self, name: str) -> str:
        """Return the message about a field whose value must not be repeated. name: the caller's name of the field."""
        if not self.is_sentence:
            return f"{name} is not accepted; give {self.message}"
        return f"{name}{'' if self.message.startswith('is ') else ':'} {self.message}"


class Refused(SallyportError):
    """The caller's mistake. details: additional fields of the error body, in JSON's types."""

    status: ClassVar[int] = 400
    details: Mapping[str, object] = MappingProxyType({})


class Invalid(Refused):
    """A value is not accepted. fields: the wrong fields. It is empty if the code that raises the error does not know
    the body."""

    def __init__(self, message: str, fields: tuple[FieldError, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields

    @classmethod
    def about(cls, message: str, *fields: str) -> "Invalid":
        """Return an error that has the same message for each of these fields. message: a sentence."""
        return cls(message, tuple(FieldError(field, message, is_sentence=True) for field in fields))

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """The wrong fields; the whole body if no field is named."""
        return self.fields or (FieldError(BODY, str(self), is_sentence=True),)


def invalid_field(field: str, accepted: str) -> Invalid:
    """Return the error for one field. accepted: a phrase for the values that the field accepts."""
    return Invalid(f"invalid {field}", (FieldError(field, accepted),))


@contextmanager
def in_field(field: str) -> Iterator[None]:
    """Set the field of an Invalid that the block raises without a field, because the code in the block does not know
    the body."""
    try:
        yield
    except Invalid as error:
        error.fields = error.fields or (FieldError(field, str(error), is_sentence=True),)
        raise


class CredentialError(Invalid):
    """A DID, a key, a credential or a presentation is not valid. `reason` is a label of a metric. It is one of
    `malformed`, `signature`, `issuer`, `holder`, `claims`, `expired`, `not_yet_valid`, `revoked`, `status`, `nonce`,
    `audience`, `unresolved`."""

    def __init__(self, message: str, reason: str = "malformed") -> None:
        super().__init__(message)
        self.reason = reason


class Unauthenticated(Refused):
    """The token is missing, unknown, expired or revoked."""

    status = 401


class Forbidden(Refused):
    """The token lacks the role or the scope for the request."""

    status = 403


class NotFound(Refused):
    """An identifier does not exist in the caller's tenant."""

    status = 404


class Conflict(Refused):
    """The request conflicts with the present state."""

    status = 409


class LimitReached(Conflict):
    """A tenant has reached its maximum number of rows of a kind. The status is 409 and not 429, because a retry
    fails too until rows are deleted or the limit is raised."""

    def __init__(self, name: str) -> None:
        super().__init__(f"limit reached: {name}; delete some, or let the installation raise the setting limits.{name}")


class TooMany(Refused):
    """The caller has reached a rate limit."""

    status = 429
