"""Fixtures of the DID tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
