"""Who acts: the caller of an operation or the user of the command line, for the audit trail.

The gate of the API and the control socket say it once for each request; everything that the request starts, in other
tasks and in the store's thread, sees the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Everything in the block is done by this one."""
    token = _ACTING.set(actor)
    try:
        yield
    finally:
        _ACTING.reset(token)
