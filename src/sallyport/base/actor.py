"""Who acts: the caller of an operation or the user of the command line, for the audit trail.

The gate of the API and the control socket say it once for each request; everything that the request starts, in other
tasks and in the store's thread, sees the same.
"""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """kind: `token`, `command line`, `agent` or `service`, which acts by itself. name: of the token or of the user.
    tenant_id: of a token or an agent."""

    kind: str
    name: str = ""
    token_id: int | None = None
    tenant_id: int | None = None


_SERVICE = Actor("service")
_ACTING: ContextVar[Actor] = ContextVar("acting", default=_SERVICE)


def acting() -> Actor:
    """Who acts in this context."""
    return _ACTING.get()


class acting_as:  # noqa: N801  it reads as a statement
    """Context manager: the actor acts in the block."""

    __slots__ = ("_actor", "_token")

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __enter__(self) -> None:
        self._token = _ACTING.set(self._actor)

    def __exit__(self, *_: object) -> None:
        _ACTING.reset(self._token)
