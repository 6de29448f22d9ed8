"""Errors of connections that the service makes, and of the keys and certificates for them."""

from typing import Final

from sallyport.base.errors import SallyportError

ADDRESS_NOT_ALLOWED: Final = "address not allowed"


class ProviderError(SallyportError):
    """The error for a server that cannot be reached, or that gives an unusable answer.

    The message is for an admin and has no secrets. retry_after_s: the Retry-After of the server in seconds, or 0.
    limited: whether the server's rate limit is reached (HTTP 429).
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0, limited: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.limited = limited


def no_connection(error: OSError, port: int) -> str:
    """Return the reason why a connection to a port failed, as a text for an admin."""
    if isinstance(error, ConnectionRefusedError):
        return f"no connection: port {port} is closed; check the port, and that the server runs"
    return f"no connection to port {port}: {error.strerror or 'the connection cannot be opened'}"


class AddressNotAllowed(ProviderError):
    """The error for a host that has only addresses to which the service may not connect (setting `egress`).

    The message is for a tenant, so it names no address. networks: the networks that must be added to the setting,
    separated by commas.
    """

    def __init__(self, networks: str) -> None:
        super().__init__(ADDRESS_NOT_ALLOWED)
        self.networks = networks

    @property
    def advice(self) -> str:
        """A message for the operator of the installation. It says how to allow the address."""
        return f"{ADDRESS_NOT_ALLOWED}; to allow it, add {self.networks} to the setting egress, and reload the service"


class PemError(SallyportError, ValueError):
    """The error for a key or certificate that the service does not accept.

    The message names the accepted kinds and never repeats the value.
    """
