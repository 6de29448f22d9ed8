"""Fixtures of the role tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
