"""Fixtures of the directory tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
