"""Fixtures of the inventory tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
