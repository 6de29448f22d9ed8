"""The fixtures of this folder."""

from tests.areas import areas, clock
from tests.did.holders import world

__all__ = ["areas", "clock", "world"]
