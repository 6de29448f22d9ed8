"""Fixtures of this folder."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
