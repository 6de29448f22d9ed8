"""Turns of the event loop that are counted."""

from sallyport.outgoing.turns import Turns


class CountedTurns(Turns):
    """Turns, and how often one was taken."""

    taken = 0

    async def take(self) -> None:
        """Count, and go on."""
        self.taken += 1
        await super().take()
