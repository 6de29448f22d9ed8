"""Fixtures of the wallet tests."""

from tests.areas import areas, clock
from tests.areas.did.holders import world

__all__ = ["areas", "clock", "world"]
