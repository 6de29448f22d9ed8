"""The tenant of each certificate that the installation's authority has issued, and TLS names in canonical form."""

from sqlite_utils import Database

from sallyport.base.addresses import canonical_host
from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table issued_certificates (
    fingerprint text primary key,
    name text not null,
    tenant_id integer not null references tenants (id)
);
create index issued_certificates_name on issued_certificates (name);
"""


def apply(db: Database) -> None:
    """Create the table. Rewrite TLS names; a name whose canonical form another client has stays as it is."""
    execute_all(db, SCHEMA)
    names = list(db.execute("select id, tls_name from radius_clients where tls_name <> '' order by id"))
    taken = {name for _, name in names}
    for client_id, name in names:
        form = canonical_host(name)
        if form and form not in taken:
            taken.add(form)
            db.execute("update radius_clients set tls_name = ? where id = ?", [form, client_id])
