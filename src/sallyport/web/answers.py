"""Large answers in memory while their clients take them.

A client may take 64 KiB in 5 s. 512 clients that take lists of 13 MB so slowly would fill the memory of the machine, so
that the sum of each tenant's large answers is limited.
"""

from collections import Counter
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sallyport.base.errors import TooMany
from sallyport.web import problem

LARGE: Final = 256 << 10
MOST: Final = 64 << 20
"""Octets of a tenant's large answers that are being sent."""


class Answers:
    """The octets of large answers that are being sent, by tenant."""

    def __init__(self) -> None:
        self.octets = Counter[int]()

    def counted(self, response: Response, tenant_id: int) -> Response:
        """Return a response that is counted while it is sent, or is 429 if its tenant has too many octets by then."""
        return _Counted(response, self.octets, tenant_id) if len(response.body) > LARGE else response


class _Counted(Response):
    """A large response. One alone is always sent."""

    def __init__(self, response: Response, octets: Counter[int], tenant_id: int) -> None:
        super().__init__(response.body, response.status_code)
        self.raw_headers = response.raw_headers
        self._octets = octets
        self._tenant_id = tenant_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, waiting = len(self.body), self._octets[self._tenant_id]
        if waiting and waiting + size > MOST:
            refused = TooMany("large answers of this tenant wait to be read: read them, or ask for smaller pages")
            return await problem.response(refused, scope["path"])(scope, receive, send)
        self._octets[self._tenant_id] += size
        try:
            return await super().__call__(scope, receive, send)
        finally:
            self._octets[self._tenant_id] -= size
