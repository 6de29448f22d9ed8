"""Times in bodies: ISO 8601 text, which is empty where no time is meant."""

from sallyport.base.clock import from_iso
from sallyport.base.errors import invalid_field


def moment(field: str, text: str, default: int) -> int:
    """A field's text as microseconds, or the default where it is empty. Invalid: names the field."""
    if not text:
        return default
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        raise invalid_field(field, "an ISO 8601 time") from None
