"""How devices sign, repeat themselves, and take challenges."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table device_posture (
    device_id integer primary key references devices (id) on delete cascade, signed integer not null,
    unsigned integer not null, unsigned_proxied integer not null, last_unsigned integer, challenges integer not null,
    challenge_answers integer not null, retransmit_ms integer, give_up_ms integer
);
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
