"""What the tests of this folder share."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
