"""Fixtures of the event tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
