"""The areas, over a store in a temporary directory."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
