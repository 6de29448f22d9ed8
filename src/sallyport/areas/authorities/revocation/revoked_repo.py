"""The certificates that a responder has called revoked, in the store: a restart and the other nodes know them.

A row is read before a responder is asked. So no older answer, and no failure of the responder, makes a certificate good
again at another node.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import structlog

from sallyport.base.clock import Clock
from sallyport.base.errors import SallyportError
from sallyport.store.model import Store, Tx, columns_of
from sallyport.store.slices import SLICE, delete_slice

MAX_REVOKED: Final = 10_000
"""Maximum number of stored certificates of a tenant. If there are more, those stored first are deleted."""

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RevokedCertificate:
    """A certificate that a responder has called revoked.

    issuer_key: the hash of the issuer's key, in hex. serial: the serial number, in hex. text: what the responder has
    answered. this_update: the time of the answer. until: its end; `NEVER`, unless the certificate is on hold. The times
    are in microseconds.
    """

    tenant_id: int
    authority_id: int
    issuer_key: str
    serial: str
    text: str
    this_update: int
    until: int


_COLUMNS: Final = columns_of(RevokedCertificate)
_PLACE: Final = "authority_id = :authority and issuer_key = :issuer and serial = :serial"


class RevokedCertificates:
    """The stored certificates. An error of the store is logged, and not raised: the login continues without the row."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def find(self, authority_id: int, issuer_key: bytes, serial: int) -> RevokedCertificate | None:
        """Return a certificate, or None if it is not stored."""
        work = partial(_find, authority=authority_id, issuer=issuer_key.hex(), serial=f"{serial:x}")
        return await self._tried(self._store.read_now, work)

    async def keep(self, revoked: RevokedCertificate) -> None:
        """Store a certificate, instead of an earlier row of it."""
        await self._tried(self._store.write, partial(_put, revoked=revoked, at=self._clock()))

    async def release(self, authority_id: int, issuer_key: bytes, serial: int) -> None:
        """Delete a certificate whose hold has ended."""
        work = partial(_delete, authority=authority_id, issuer=issuer_key.hex(), serial=f"{serial:x}")
        await self._tried(self._store.write, work)

    async def _tried(self, run: Callable[[Callable[[Tx], T]], Awaitable[T]], work: Callable[[Tx], T]) -> T | None:
        try:
            return await run(work)
        except SallyportError as error:
            log.warning("revoked_certificate_not_stored", error=str(error))
            return None


def delete_of_authority(tx: Tx, authority_id: int) -> int:
    """Delete some certificates of an authority. Return their number."""
    return delete_slice(tx, "revoked_certificates", "id", "authority_id = :a", a=authority_id)


def _find(tx: Tx, authority: int, issuer: str, serial: str) -> RevokedCertificate | None:
    sql = f"select {', '.join(_COLUMNS)} from revoked_certificates where {_PLACE}"
    return tx.one(RevokedCertificate, sql, authority=authority, issuer=issuer, serial=serial)


def _put(tx: Tx, revoked: RevokedCertificate, at: int) -> None:
    tx.insert(
        "revoked_certificates",
        (*_COLUMNS, "stored_at"),
        [[*(getattr(revoked, name) for name in _COLUMNS), at]],
        on_conflict="on conflict (authority_id, issuer_key, serial) do update set text = excluded.text, "
        "this_update = excluded.this_update, until = excluded.until",
    )
    old = (
        "select id from revoked_certificates where tenant_id = :t "
        f"order by stored_at desc, id desc limit {SLICE} offset :most"
    )
    tx.execute(f"delete from revoked_certificates where id in ({old})", t=revoked.tenant_id, most=MAX_REVOKED)


def _delete(tx: Tx, authority: int, issuer: str, serial: str) -> None:
    sql = f"delete from revoked_certificates where {_PLACE}"
    tx.execute(sql, authority=authority, issuer=issuer, serial=serial)
