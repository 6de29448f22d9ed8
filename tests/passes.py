"""A counter of the passes of the event loop."""

import trio


class PassCounter(trio.abc.Instrument):
    """An instrument that counts the passes of the event loop."""

    passes = 0

    def after_io_wait(self, timeout: float) -> None:
        """Count a pass."""
        self.passes += 1
