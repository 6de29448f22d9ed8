"""The passes of the event loop, counted."""

import trio


class PassCounter(trio.abc.Instrument):
    """Counts the passes of the event loop."""

    passes = 0

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins."""
        self.passes += 1
