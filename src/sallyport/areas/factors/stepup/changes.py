"""The logins that wait for a change of their step-up, at all nodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from sallyport.nodes.notices import Notices

_NOTICE: Final = "stepup"


class Changes:
    """Wakes the logins whose step-up has changed. notices: the notices between the nodes, because the page may be at
    another node than the login."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._waiting: dict[str, set[trio.Event]] = {}
        notices.receive(_NOTICE, lambda values, _age_us: self._wake(str(values[0])))

    @contextmanager
    def waiting(self, stepup_id: str) -> Iterator[trio.Event]:
        """Yield an event that is set when a step-up changes. Enter the context before you read the step-up. Otherwise
        you may miss a change."""
        event = trio.Event()
        waiting = self._waiting.setdefault(stepup_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                del self._waiting[stepup_id]

    def tell(self, stepup_id: str) -> None:
        """Wake the logins that wait for a step-up, at all nodes. Call this after the commit."""
        self._wake(stepup_id)
        self._notices.send(_NOTICE, stepup_id)

    def _wake(self, stepup_id: str) -> None:
        for event in self._waiting.get(stepup_id, ()):
            event.set()
