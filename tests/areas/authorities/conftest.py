"""Fixtures of the authority tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
