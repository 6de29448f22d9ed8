"""Fixtures of the dynamic authorization tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
