"""Fixtures of the domain tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
