"""Decentralized identity. Issuing and verifying are given as a ratio to plain Ed25519 signatures of `cryptography` in
the same run. The lists are those of a domain with 1,000,000 credentials of 1,000 wallets; another tenant has a tenth as
many. Issuing means making the token of an existing document. Verifying means going from the text of a token to a valid
credential. Both should reach half of the rate of plain signatures.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tabulate import tabulate

from sallyport.areas.did.credentials import repo
from sallyport.areas.did.credentials.credential import Credential, Schema, Status
from sallyport.areas.did.crypto import jws, vc
from sallyport.areas.did.crypto.documents import did_of, key_did, resolve
from sallyport.areas.did.crypto.encoding import ED25519
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.keys import PrivateKey
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind, NewDid, Search
from sallyport.base.clock import SECOND
from sallyport.base.wire import JSON
from sallyport.store.model import ListQuery, Tx
from sallyport.store.sqlite import SqliteStore

from .lists import Case, Tenant, add_tenant, environ_of, measure_inside, measure_outside, open_store, table, tell
from .settings import Settings

CREDENTIALS, WALLETS = 1_000_000, 1_000
SMALLER = 10
TURN = 5_000
START_US = 1_767_225_600 * SECOND
AIM = 0.5
_STATUSES = (Status.ACTIVE, Status.ASSIGNED, Status.ACCEPTED, Status.IGNORED, Status.REVOKED)


@dataclass(frozen=True, slots=True)
class ListCase:
    """A request of credentialList."""

    name: str
    page: int = 1
    size: int = 10
    small: bool = False
    path: str = "/api/v1/credential/credentialList"

    def tenant(self, large: Tenant, small: Tenant) -> Tenant:
        """Return the tenant of the list."""
        return small if self.small else large

    def body(self, tenant: Tenant) -> Mapping[str, object]:
        """Return the body of the HTTP request."""
        return {"domainId": tenant.domain_id, "pageNumber": self.page, "pageSize": self.size}

    def work(self, tenant: Tenant) -> Callable[[Tx], int]:
        """Run the same query inside the process."""
        stretch = ListQuery(tenant.domain_id, (self.page - 1) * self.size, self.size)
        return lambda tx: repo.entries(tx, stretch)[1]


@dataclass(frozen=True, slots=True)
class DidCase:
    """A request of SearchDID."""

    name: str
    text: str = ""
    small: bool = False
    path: str = "/api/v1/did/SearchDID"

    def tenant(self, large: Tenant, small: Tenant) -> Tenant:
        """Return the tenant of the DIDs."""
        return small if self.small else large

    def body(self, tenant: Tenant) -> Mapping[str, object]:
        """Return the body of the HTTP request."""
        return {"name": self.text, "didType": ""}

    def work(self, tenant: Tenant) -> Callable[[Tx], int]:
        """Run the same query inside the process."""

        def count(tx: Tx) -> int:
            tenant_id = tx.value(int, "select tenant_id from domains where id = :id", id=tenant.domain_id) or 0
            return dids.search(tx, Search(tenant_id, self.text))[1]

        return count


CASES: Sequence[Case] = (
    ListCase("credentials: first page, 10 entries"),
    ListCase("credentials: first page, 1,000 entries", size=1000),
    ListCase("credentials: page 50,000", page=50_000),
    ListCase("credentials: last page", page=100_000),
    ListCase("credentials: first page of the smaller tenant", small=True),
    DidCase("DIDs: first page"),
    DidCase("DIDs: a part of a name", text="holder 77"),
    DidCase("DIDs: a name that nobody has", text="nobody"),
)


def run(settings: Settings) -> str:
    """Return both tables as Markdown."""
    speed = _speed(settings.seconds)
    with TemporaryDirectory(prefix="sallyport-did-", dir=settings.directory) as directory:
        return f"{speed}\n\n{_lists(Path(directory), settings.seconds)}"


def _speed(seconds: float) -> str:
    """Return the number of credentials that are issued and verified in a second, beside plain signatures. Each is the
    best of three turns.
    """
    bare = Ed25519PrivateKey.generate()
    key = PrivateKey.new(ED25519)
    signer = Signer(resolve(key_did(key.public)).methods[0].id, key)
    unsigned = document(key_did(key.public))
    text = vc.sign(unsigned, signer)
    octets = text.encode()
    signature, public = bare.sign(octets), bare.public_key()

    def verify() -> None:
        token = jws.parse(text)
        vc.verify(token, resolve(did_of(token.key_id)), START_US)

    work: dict[str, Callable[[], object]] = {
        "sign": partial(bare.sign, octets),
        "issue": partial(vc.sign, unsigned, signer),
        "check": partial(public.verify, signature, octets),
        "verify": verify,
    }
    rates = {name: max(_rate(each, seconds / 12) for _ in range(3)) for name, each in work.items()}
    rows = [
        [told, f"{rates[ours]:,.0f}", f"{rates[theirs]:,.0f}", f"{rates[ours] / rates[theirs]:.2f}", f"{AIM}"]
        for told, ours, theirs in (("issue", "issue", "sign"), ("verify", "verify", "check"))
    ]
    headers = ["a second, one core", "Sallyport", "bare Ed25519", "ratio", "aim"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left", *["right"] * 4])


def _rate(work: Callable[[], object], seconds: float) -> float:
    """Return how often the work can be done in a second."""
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for _ in range(50):
            work()
        count += 50
    return count / (time.perf_counter() - started)


def document(did: str) -> dict[str, JSON]:
    """Return a credential that has not been issued yet."""
    url = "https://sallyport.example.org/credentials/status/8a1b0f1e-5a57-4b3c-9f0e-2f5a3c1d7e60"
    return {
        "@context": [vc.CONTEXT, "https://w3id.org/vc/status-list/2021/v1"],
        "id": "urn:uuid:6f1bb1f1-9f5a-4c3e-8d6a-1f2f5a2a9c11",
        "type": [vc.CREDENTIAL],
        "issuer": did,
        "issuanceDate": "2026-01-01T00:00:00Z",
        "expirationDate": "2027-01-01T00:00:00Z",
        "credentialSubject": {"id": did, "epmUsername": "alice", "holderId": "17"},
        "credentialStatus": {
            "id": f"{url}#94567",
            "type": "StatusList2021Entry",
            "statusPurpose": "revocation",
            "statusListIndex": "94567",
            "statusListCredential": url,
        },
    }


def _lists(directory: Path, seconds: float) -> str:
    data = directory / "data"
    environ = environ_of(data)
    large, small = (add_tenant(environ, directory, number) for number in (1, 2))
    told = trio.run(_fill, data, large, small)
    inside = trio.run(measure_inside, data, CASES, large, small, seconds)
    outside = measure_outside(environ, directory, CASES, large, small, seconds)
    return f"{told}\n\n{table(CASES, inside, outside)}"


async def _fill(data: Path, large: Tenant, small: Tenant) -> str:
    """Add all rows and return a line with the time that this took.

    All credentials have the same token, because no list reads it.
    """
    started = time.monotonic()
    key = PrivateKey.new(ED25519)
    token = vc.sign(document(key_did(key.public)), Signer("did:key:z#z", key))
    async with open_store(data) as store:
        for tenant, part in ((large, 1), (small, SMALLER)):
            add = await store.write(partial(begin, tenant.domain_id, token))
            await _in_turns(store, CREDENTIALS // part, add)
    size = (data / "sallyport.db").stat().st_size / (1 << 20)
    count = CREDENTIALS + CREDENTIALS // SMALLER
    return f"{count:,} credentials, {size:,.0f} MiB, in {time.monotonic() - started:.0f} s."


def begin(domain_id: int, token: str, tx: Tx) -> Callable[[Tx, int], None]:
    """Add an issuer, its holders and a schema. Return a function that adds the credential with a given number."""
    tenant_id = tx.value(int, "select tenant_id from domains where id = :id", id=domain_id) or 0

    def did(name: str, kind: DidKind) -> int:
        new = NewDid(domain_id, "key", name, "", "Ed25519")
        return dids.add(tx, tenant_id, new, kind, f"did:key:{name}", START_US, wallet_id=None, issuer_id=None)

    issuer = did("issuer", DidKind.ISSUER)
    for number in range(WALLETS):
        did(f"holder {number}", DidKind.USER)
    schema = repo.add_schema(
        tx, Schema(0, tenant_id, domain_id, f"schema-{domain_id}", "Badge", "{}"), issuer, START_US
    )

    def add(tx: Tx, number: int) -> None:
        if number % 65_536 == 0:
            lists.append(repo.add_list(tx, issuer, f"{domain_id}-{number}", bytes(16_384)).id)
        wallet = number % WALLETS
        credential = Credential(
            id=0,
            tenant_id=tenant_id,
            domain_id=domain_id,
            issuer_id=issuer,
            issuer_did="did:key:issuer",
            issuer_name="issuer",
            schema_id=schema,
            schema_name="Badge",
            uuid=f"urn:uuid:{domain_id}-{number}",
            name=f"Badge {number % 7}",
            status=_STATUSES[number % 5],
            wallet_id=wallet + 1 if number % 5 else None,
            holder_did=f"did:key:holder {wallet}",
            epm_username=f"user{wallet}",
            list_id=lists[-1],
            list_index=number % 65_536,
            issued_at=START_US,
            expires_at=None,
        )
        repo.add(tx, credential, token, None)

    lists: list[int] = []
    return add


async def _in_turns(store: SqliteStore, count: int, add: Callable[[Tx, int], None]) -> None:
    for done in range(0, count, TURN):
        await store.write(lambda tx, done=done: [add(tx, number) for number in range(done, min(done + TURN, count))])
        if done % 100_000 == 0:
            tell(f"{done:,} of {count:,} credentials")
