"""Errors of connections that the service makes, and of the keys and certificates for them."""

from typing import Final

from sallyport.base.errors import SallyportError

ADDRESS_NOT_ALLOWED: Final = "address not allowed"


class ProviderError(SallyportError):
    """A server cannot be reached, or its answer is unusable. The message is for an admin, without secrets.

    retry_after_s: the time that the server asks the client to wait (Retry-After), in seconds; 0: none. limited: the
    server's rate limit is reached (HTTP 429).
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0, limited: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.limited = limited


def no_connection(error: OSError, port: int) -> str:
    """Return why there is no connection to a port, in words for an admin."""
    if isinstance(error, ConnectionRefusedError):
        return f"no connection: port {port} is closed; check the port, and that the server runs"
    return f"no connection to port {port}: {error.strerror or 'it cannot be opened'}"


class AddressNotAllowed(ProviderError):
    """The setting `egress` allows none of a host's addresses. The message is for a tenant: it names no address.

    networks: the networks that the setting lacks, separated by commas.
    """

    def __init__(self, networks: str) -> None:
        super().__init__(ADDRESS_NOT_ALLOWED)
        self.networks = networks

    @property
    def advice(self) -> str:
        """The message for the installation: how to allow the address."""
        return f"{ADDRESS_NOT_ALLOWED}; to allow it, add {self.networks} to the setting egress, and restart the service"


class PemError(SallyportError, ValueError):
    """A key or certificate is refused. The message names the accepted kinds and never repeats the value."""
