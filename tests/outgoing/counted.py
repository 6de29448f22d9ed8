"""Turns of the event loop, counted for the tests."""

from sallyport.base.fair import LoopTurns


class CountedTurns(LoopTurns):
    """Turns that count how often a turn was taken."""

    taken = 0

    async def take(self) -> None:
        """Count, then continue."""
        self.taken += 1
        await super().take()
