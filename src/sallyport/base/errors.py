"""Every error that Sallyport raises on purpose.

    SallyportError
    ├── PacketError            the octets from the network are not a valid packet; dropped and counted
    ├── StartError             the service or a command cannot start; printed in one line, exit code 1
    │   ├── ConfigError        a setting is missing, unknown or malformed
    │   ├── DictionaryError    a RADIUS dictionary file cannot be used
    │   ├── ClientsFileError   a FreeRADIUS clients.conf cannot be imported
    │   ├── Locked             another process owns the data directory
    │   └── Absent             no installation or no running service was found
    ├── StoreError             the store failed; a RADIUS request gets no answer
    │   ├── StoreFull          no space is left on the disk of the store
    │   ├── TookTooLong        a search exceeded its time limit; the text says what to do
    │   ├── LeaseLost          another node now holds the lease for the periodic tasks
    │   ├── Contradiction      a write breaks a constraint of the schema; a retry would fail too
    │   └── SchemaError        this program cannot use the database, which may be newer or of another program
    ├── WireError              a message between service and agent is malformed; the text names the field
    ├── ServiceAway            the service is unreachable or busy, or another program answered; the agent retries later
    ├── ServiceRefused         the service has refused an agent's request; `status` is the HTTP status
    ├── HostError              an action on an agent's host failed; the agent's report contains the message
    ├── SecretError            a sealed value cannot be decrypted: wrong key, or altered value
    └── Refused                the caller made a mistake; `status` is the HTTP status of the answer
        ├── Invalid            400, with the wrong fields
        │   └── CredentialError  a DID, key, credential or presentation is not valid
        ├── Unauthenticated    401
        ├── Forbidden          403
        ├── NotFound           404
        ├── Conflict           409
        │   └── LimitReached   a tenant has the maximum number of rows of a kind (`settings/limits.py`)
        └── TooMany            429

`web/problem.py` maps these errors to HTTP, and `cli/main.py` maps them to exit codes.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

INVALID_TOKEN: Final = "invalid token"  # noqa: S105  a message
"""The message for tokens and API keys that are unknown, expired, revoked or used up."""
BODY: Final = "body"
"""The field name of an error that concerns the whole body, not a single field."""
MISSING: Final = "is missing"
"""The message about a missing required field."""


class SallyportError(Exception):
    """The base class of all errors. The message is for people and never contains a secret."""


class PacketError(SallyportError):
    """A datagram or stream contains an invalid packet, which is dropped.

    reason: the value of the label `reason` of the metric sallyport_radius_discards_total.
    """

    def __init__(self, message: str, reason: str = "malformed") -> None:
        super().__init__(message)
        self.reason = reason


class StartError(SallyportError):
    """The service or a command cannot start."""


class ConfigError(StartError):
    """A setting is missing, unknown or malformed."""


class DictionaryError(StartError):
    """A RADIUS dictionary file cannot be used. The message contains file and line."""


class ClientsFileError(StartError):
    """A FreeRADIUS clients.conf cannot be imported. The message contains file and line."""


class Locked(StartError):
    """Another process owns the data directory."""


class Absent(StartError):
    """No installation or no running service was found. If a service is just starting, a retry may succeed."""


class StoreError(SallyportError):
    """An operation of the store failed. Its transaction has changed nothing."""


class StoreFull(StoreError):
    """No disk space is left for the store."""


class TookTooLong(StoreError):
    """A search exceeded its time limit. timeout_s: the limit in seconds."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"the search took longer than {timeout_s:g} s: search for a longer text or a shorter time")


class Contradiction(StoreError):
    """A write breaks a constraint of the schema, because of a defect of the program. A retry would fail too."""


class SchemaError(StoreError):
    """This program cannot use the database. The database may be newer than the program, belong to another program, or
    not be a database at all."""


class LeaseLost(StoreError):
    """Another node now holds the lease for the periodic tasks. The transaction has changed nothing."""


class WireError(SallyportError):
    """A message between the service and an agent is malformed. The text names the wrong field, but never contains its
    value."""


class ServiceAway(SallyportError):
    """An agent's request got no valid answer, and the agent should retry later. Either the service is unreachable, or
    another program answered, or the HTTP status asks for a retry (429, or 500 and above).

    after_s: the Retry-After of the answer, in seconds; 0 if the answer has no Retry-After.
    """

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class ServiceRefused(SallyportError):
    """The service has refused an agent's request. status: the HTTP status of the answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class HostError(SallyportError):
    """An action on an agent's host failed, or the host is not in the state that the action requires."""


class SecretError(SallyportError):
    """A sealed value cannot be decrypted with the master keys of this process."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A wrong field of a request body.

    field: the path of the field, with dots. message: a predicate of the field, such as "must be an IP address" or "is
    missing", or a sentence about the error. The message never contains a submitted value.
    """

    field: str
    message: str

    def about(self, name: str) -> str:
        """Return the message together with a name of the field. name: the name that the caller shows to the user."""
        return about(name, self.message)


def about(name: str, message: str) -> str:
    """Return the message of a field error together with the name of the field: `--port must be a whole number`, or
    `--port: set only one of --port and --url`."""
    return f"{name}{'' if message.startswith(('is ', 'must ')) else ':'} {message}"


class Refused(SallyportError):
    """The caller made a mistake. details: additional fields of the error body, in JSON's types."""

    status: ClassVar[int] = 400
    details: Mapping[str, object] = MappingProxyType({})


class Invalid(Refused):
    """A value is not accepted.

    fields: the wrong fields; empty if the code that raises the error does not know the names of the fields.
    """

    def __init__(self, message: str, fields: tuple[FieldError, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields

    @classmethod
    def about(cls, message: str, *fields: str) -> "Invalid":
        """Return an error with the same message for each of the given fields. message: a sentence."""
        return cls(message, tuple(FieldError(field, message) for field in fields))

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """Return the wrong fields. If no field is known, return one entry for the whole body."""
        return self.fields or (FieldError(BODY, str(self)),)


def invalid_field(field: str, message: str) -> Invalid:
    """Return the error for one wrong field. message: the message of a FieldError."""
    return Invalid(f"invalid {field}", (FieldError(field, message),))


@contextmanager
def in_field(field: str) -> Iterator[None]:
    """Add the name of a field to an Invalid that the block raises, if the error names no field yet. Code in the block
    often does not know the name of the field."""
    try:
        yield
    except Invalid as error:
        error.fields = error.fields or (FieldError(field, str(error)),)
        raise


class CredentialError(Invalid):
    """A DID, a key, a credential or a presentation is not valid.

    reason: the value of a metric's label: `malformed`, `signature`, `issuer`, `holder`, `claims`, `expired`,
    `not_yet_valid`, `revoked`, `status`, `nonce`, `audience` or `unresolved`.
    """

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
    """An object does not exist in the caller's tenant."""

    status = 404


class Conflict(Refused):
    """The request conflicts with the current state of an object."""

    status = 409


class LimitReached(Conflict):
    """A tenant has the maximum number of rows of a kind.

    The HTTP status is 409 and not 429, because a retry fails until rows are deleted or the limit is raised.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"limit reached: {name}; delete some, or ask the administrator to raise the setting limits.{name}"
        )


class TooMany(Refused):
    """The caller has reached a rate limit. pause_s: the seconds after which the caller may try again."""

    status = 429
    pause_s: ClassVar[int] = 60


class TooManyAtOnce(TooMany):
    """The caller has too many requests or answers in progress."""

    pause_s = 1
