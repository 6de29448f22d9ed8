"""No audit entry contains a secret."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sallyport.areas.clients.plan import Wanted
from sallyport.areas.clients.service import NewClient
from sallyport.areas.did.wallets.wallet import NewWallet
from sallyport.store.copies import Copies
from sallyport.web.scope import Role
from tests.areas import Areas
from tests.areas.audit import NewEntries, trail

SECRET = "hunter2-is-what-nobody-may-see"
OTHER = "tr0ub4dor-is-what-nobody-may-see"
PROVIDERS: Mapping[str, Mapping[str, str]] = {
    "totp": {},
    "duo": {"ikey": "DI1", "skey": SECRET, "host": "api-1.duosecurity.com"},
    "okta": {"domain": "corp.okta.com", "apiToken": SECRET},
    "privacyidea": {"url": "https://pi.example.com", "adminToken": SECRET},
    "webhook": {"url": "https://hook.example.com/x", "secret": SECRET},
    "radius": {"host": "192.0.2.7", "secret": SECRET},
    "wallet": {"issuerDid": "did:web:id.example.com"},
    "own": {"factors": "totp", "binding": "unbound"},
}


async def is_absent(areas: Areas, *secrets: str) -> bool:
    """Return whether no column of any entry contains a secret in clear, in hexadecimal, or the beginning of a
    secret.
    """
    text = "\n".join(map(repr, await trail(areas)))
    spelled = [form for secret in secrets for form in (secret[:10], secret.encode().hex())]
    return not any(form in text for form in spelled)


async def test_the_trail_has_no_client_secret(areas: Areas, new_entries: NewEntries) -> None:
    """Given and generated secrets are not in the entries of clients that are added, imported, changed and deleted."""
    added, _ = await areas.clients.add(areas.tenant, NewClient("a", "192.0.2.1/32", SECRET.encode()))
    _, made = await areas.clients.add(areas.tenant, NewClient("b", "192.0.2.2/32"))
    wanted = [
        Wanted("a", "192.0.2.1/32", OTHER.encode(), None, "auto", "auto", None),
        Wanted("c", "192.0.2.3/32", OTHER.encode(), None, "auto", "auto", None),
    ]
    await areas.clients.carry_out(areas.tenant, areas.clients.plan(areas.tenant, wanted))
    await areas.clients.update(areas.tenant, added, {}, secret=SECRET.encode())
    await areas.clients.latches.unlatch(areas.clients.table.by_id[added])
    await areas.clients.delete(areas.tenant, added)
    assert len(await new_entries.rows()) == 7
    assert await is_absent(areas, SECRET, OTHER, made.decode())


async def test_every_provider_has_test_fields(areas: Areas) -> None:
    """Each kind of provider is in PROVIDERS, so that a new kind must be added there with its fields."""
    assert PROVIDERS.keys() == areas.kinds.keys()


@pytest.mark.parametrize("name", PROVIDERS)
async def test_the_trail_has_no_provider_secret(areas: Areas, new_entries: NewEntries, name: str) -> None:
    """No secret is in the entries of a provider that is set, changed, replaced by another kind and deleted."""
    fields = PROVIDERS[name]
    other = {field: OTHER if value == SECRET else value for field, value in fields.items()}
    await areas.providers.set(areas.domain, name, fields, 60)
    await areas.providers.set(areas.domain, name, other, 60)
    await areas.providers.set(areas.domain, "webhook", PROVIDERS["webhook"], 60)
    await areas.providers.set(areas.domain, name, fields, 60)
    await areas.providers.delete(areas.domain)
    assert len(await new_entries.rows()) == 5
    assert await is_absent(areas, SECRET, OTHER)


async def test_the_trail_has_no_wallet_key_and_token(areas: Areas) -> None:
    """No secret is in the entries of the registration and the reset of a wallet."""
    wallets = areas.did.wallets
    made = await wallets.register(areas.tenant, NewWallet(areas.domain, "ann", "ann@corp.example", ""))
    again = await wallets.reset(areas.tenant, areas.domain, made.wallet_id)
    assert await is_absent(areas, made.wallet_key, made.token, again.wallet_key, again.token)


async def test_the_trail_has_no_access_token_and_hash(areas: Areas, new_entries: NewEntries, tmp_path: Path) -> None:
    handed: list[str] = []
    assert await areas.tenancy.first_start(handed.append)
    record, token = await areas.tenancy.create_token(1, 1, Role.ADMIN, "ci", None)
    await areas.tenancy.revoke("ci")
    hashes = await areas.store.read(lambda tx: tx.all(lambda *, hash: str(hash), "select hash from access_tokens"))
    assert len(await new_entries.rows()) == 3
    assert record.id and await is_absent(areas, token, token[3:], handed[0], handed[0][3:], *hashes)


async def test_a_restore_adds_no_secret_to_the_trail(areas: Areas, tmp_path: Path) -> None:
    """The backup contains secrets."""
    await areas.clients.add(areas.tenant, NewClient("a", "192.0.2.1/32", SECRET.encode()))
    copies = Copies(
        areas.store,
        areas.settings.database_path,
        check=lambda _tx: None,
        replaced=areas.configuration.restored,
        backed_up=lambda _at: None,
    )
    await copies.backup(tmp_path / "b.db")
    await copies.restore(tmp_path / "b.db")
    assert await is_absent(areas, SECRET)
