"""What goes wrong with a server that the service asks."""

from sallyport.base.errors import SallyportError


class ProviderError(SallyportError):
    """A server cannot be asked, or what it says makes no sense. The message is for an admin, without secrets.

    retry_after_s: it asks to be left alone for so long (HTTP 429, or 503 that says so). limited: it is there, and was
    asked too often (HTTP 429).
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0, limited: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.limited = limited
