"""The areas of the service."""

from tests.areas import areas, clock

__all__ = ["areas", "clock"]
