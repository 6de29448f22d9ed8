"""Wallets, presentation requests, and which endpoint users have which wallets and credentials.

Of a walletKey its hash is kept, and a public key to seal to. `challenge_id` is of the login that a request is the
second factor of; others have none. A request is answered once: its `status` leaves `open` for good.
`credential_users` has the epmUsername, without case, of every credential that is in a wallet: a login looks there.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table wallets (
    id integer primary key autoincrement, domain_id integer not null references domains (id), username text not null,
    email text not null, email_key text not null, url text not null, key_hash text not null,
    public_key blob not null, token_id integer not null unique references access_tokens (id),
    created_at integer not null, unique (domain_id, email_key)
);
create index wallets_order on wallets (domain_id, id);
create index wallets_email on wallets (email_key);
create virtual table wallets_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);

create table endpoint_user_wallets (
    user_id integer not null references endpoint_users (id), wallet_id integer not null references wallets (id),
    primary key (user_id, wallet_id)
) without rowid;
create index endpoint_user_wallets_wallet on endpoint_user_wallets (wallet_id);
create table endpoint_user_credentials (
    user_id integer not null references endpoint_users (id), credential_id integer not null,
    credential_type text not null, primary key (user_id, credential_id)
) without rowid;
create index endpoint_user_credentials_credential on endpoint_user_credentials (credential_id);

create table credential_users (
    credential_id integer primary key references credentials (id),
    domain_id integer not null references domains (id), name_key text not null
);
create index credential_users_name on credential_users (domain_id, name_key, credential_id);

create table presentation_requests (
    id integer primary key autoincrement, domain_id integer not null references domains (id),
    wallet_id integer not null references wallets (id), holder_did text not null, issuer_did text not null,
    schema_id integer not null, nonce text not null, definition text not null, purpose text not null,
    endpoint text not null,
    challenge_id text unique, status text not null, credential_id integer, created_at integer not null,
    expires_at integer not null, answered_at integer
);
create index presentation_requests_open on presentation_requests (wallet_id, id) where status = 'open';
create index presentation_requests_holder on presentation_requests (domain_id, holder_did, issuer_did)
    where status = 'open';
create index presentation_requests_expired on presentation_requests (expires_at);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
