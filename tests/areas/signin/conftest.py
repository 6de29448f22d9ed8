"""Fixtures of the tests of administrators."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
