"""DIDs with their keys, credential schemas, credentials, and the lists that tell which are revoked.

A deleted issuer stays as a row, since what it has signed can still be verified, and revoked. `wallet_id` is a wallet's,
`issuer_id` of a DID the issuer that a holder belongs to. The tokens are apart from what the lists show, so that a page
reads none of them. An index of a status list is given once: credentials are never deleted.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table dids (
    id integer primary key autoincrement, tenant_id integer not null references tenants (id),
    domain_id integer not null references domains (id), did text not null, kind text not null, method text not null,
    name text not null, description text not null, wallet_id integer, issuer_id integer,
    credentials_issued integer not null default 0, created_at integer not null, updated_at integer not null,
    deleted_at integer, unique (domain_id, did)
);
create index dids_did on dids (did);
create index dids_order on dids (domain_id, id) where deleted_at is null;
create index dids_kind on dids (tenant_id, kind, id) where deleted_at is null;
create index dids_tenant on dids (tenant_id, id) where deleted_at is null;
create index dids_wallet on dids (domain_id, wallet_id, id) where deleted_at is null and wallet_id is not null;
create index dids_issuer on dids (domain_id, issuer_id, id) where deleted_at is null and issuer_id is not null;
create virtual table dids_search using fts5 (pieces, content = '', tokenize = 'ascii', columnsize = 0);
create table did_keys (
    id integer primary key autoincrement, did_id integer not null references dids (id) on delete cascade,
    method_id text not null, multikey text not null, sealed blob, state text not null, created_at integer not null,
    unique (did_id, method_id)
);

create table credential_schemas (
    id integer primary key autoincrement, tenant_id integer not null references tenants (id),
    domain_id integer not null references domains (id), author_id integer not null references dids (id),
    uuid text not null unique, name text not null, content text not null, created_at integer not null
);
create index credential_schemas_order on credential_schemas (domain_id, id);
create index credential_schemas_author on credential_schemas (author_id, id);

create table status_lists (
    id integer primary key autoincrement, issuer_id integer not null references dids (id), uuid text not null unique,
    bits blob not null, used integer not null default 0, version integer not null default 0
);
create index status_lists_issuer on status_lists (issuer_id, id);

create table credentials (
    id integer primary key autoincrement, tenant_id integer not null references tenants (id),
    domain_id integer not null references domains (id), issuer_id integer not null references dids (id),
    issuer_did text not null, schema_id integer not null references credential_schemas (id), uuid text not null unique,
    name text not null, status text not null, wallet_id integer, holder_did text not null, epm_username text not null,
    password blob, list_id integer not null references status_lists (id), list_index integer not null,
    issued_at integer not null, expires_at integer, revoked_at integer, updated_at integer not null,
    unique (list_id, list_index)
);
create index credentials_order on credentials (domain_id, id);
create index credentials_wallet on credentials (wallet_id, status, id) where wallet_id is not null;
create index credentials_holder on credentials (domain_id, holder_did, id);
create index credentials_user on credentials (domain_id, epm_username, id) where epm_username <> '';
create table credential_tokens (
    credential_id integer primary key references credentials (id), jwt text not null, proof text
);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
