"""A secret in memory: octets that no log, error or repr shows."""

import hmac
from typing import Final


class Secret:
    """Octets that show themselves as `***`; `reveal` is the only way to them.

    Equality takes the same time wherever the octets differ.
    """

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets: Final = octets

    def reveal(self) -> bytes:
        """The octets themselves, for the one place that uses them."""
        return self._octets

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._octets, other._octets)

    def __hash__(self) -> int:
        return hash((Secret, self._octets))

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")
