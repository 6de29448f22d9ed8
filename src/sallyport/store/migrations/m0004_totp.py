"""One-time-password seeds of endpoint users, and enrolments that wait for their first code.

`motp` is the confirmed seed, sealed; `motp_step` the last time step of it that was accepted. A user has one enrolment
at most: a new one takes its place.
"""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
alter table endpoint_users add column motp blob;
alter table endpoint_users add column motp_step integer not null default -1;
create table totp_enrolments (
    user_id integer primary key references endpoint_users (id) on delete cascade, seed blob not null,
    link_hash text not null unique, wrong_codes integer not null, expires_at integer not null
);
create index totp_enrolments_end on totp_enrolments (expires_at);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
