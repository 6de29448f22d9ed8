"""Why a directory could not be read."""

from sallyport.base.errors import SallyportError


class ReadError(SallyportError):
    """A reading ended before its end, and nothing that it did not tell of is gone. The message is for an admin,
    without secrets.

    retry_after_s: the directory asks to be left alone for so long; 0 where it says nothing.
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
