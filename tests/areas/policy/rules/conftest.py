"""Fixtures of the rule tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
