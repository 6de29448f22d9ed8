"""Fixtures of the key tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
