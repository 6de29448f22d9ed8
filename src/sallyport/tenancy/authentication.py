"""Whom a token speaks for, whichever of the two sorts it is."""

from sallyport.base.ids import KEY_PREFIX
from sallyport.web.scope import Authenticator, Caller


class Authentication:
    """Access tokens and API keys together, told apart by how they begin. Satisfies web.scope.Authenticator."""

    def __init__(self, tokens: Authenticator, keys: Authenticator) -> None:
        self._tokens = tokens
        self._keys = keys

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Whom the token speaks for. Unauthenticated, TooMany; StoreError."""
        kind = self._keys if token.startswith(KEY_PREFIX) else self._tokens
        return await kind.authenticate(token, source)
