"""Fixtures of the MFA tests."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
