"""The actor of a change, for the audit trail: the token that calls an operation, or the user of the command line.

The HTTP API and the control socket set the actor at the start of each request, as a context variable. The tasks that a
request starts have the same actor. So has the work of the request in the store's thread.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Overrides:
    """The objects that an actor changes although files manage them.

    names: as text for the audit trail. follow: called in the transaction of each change, after it is written, with the
    transaction.
    """

    names: str
    follow: Callable[..., None] = lambda _tx: None


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of a change.

    kind: `token`, `administrator`, `identity` (a person of an identity provider), `person` (a person who manages
    the own factors), `command line`, `agent`, `public` (a reader of a public document, without a token), or `service`
    if no request makes the change. name: the name of the token, the administrator, the person or the user, or the
    address of the reader. tenant_id: the tenant of the actor, or the tenant for which the service works; None if it has
    none. is_installation: whether the actor is an administrator of the whole installation. overrides: the objects that
    the actor changes although files manage them.
    """

    kind: str
    name: str = ""
    token_id: int | None = None
    tenant_id: int | None = None
    is_installation: bool = False
    overrides: Overrides | None = None


_SERVICE = Actor("service")
_ACTING: ContextVar[Actor] = ContextVar("acting", default=_SERVICE)


def acting() -> Actor:
    """Return the actor of the running task."""
    return _ACTING.get()


class acting_as:  # noqa: N801  it reads as a statement
    """A context manager that sets the actor for the block."""

    __slots__ = ("_actor", "_token")

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __enter__(self) -> None:
        self._token = _ACTING.set(self._actor)

    def __exit__(self, *_: object) -> None:
        _ACTING.reset(self._token)
