"""Sessions, as devices account for them. `newest` is 1 in the session that an Acct-Session-Id of a device names now, 0
in those that had it before."""

from sqlite_utils import Database

from sallyport.store.migrations.statements import execute_all

SCHEMA = """
create table sessions (
    id integer primary key autoincrement, domain_id integer not null, device_id integer not null,
    acct_session_id blob not null, newest integer not null, user_name text, station text, called_station text,
    class blob, multi_session_id blob, nas_port integer, nas_port_id text, nas_port_type integer, framed_ip text,
    framed_ipv6 text, framed_ipv6_prefix text, delegated_ipv6_prefix text, session_time integer not null,
    input_octets integer not null, output_octets integer not null, input_packets integer not null,
    output_packets integer not null, started integer not null, first_seen integer not null, updated integer not null,
    stopped integer, state text not null, terminate_cause integer, records integer not null, recent blob not null,
    follows integer not null
);
create unique index sessions_identity on sessions (device_id, acct_session_id) where newest = 1;
create index sessions_order on sessions (domain_id, state, id);
create index sessions_device on sessions (domain_id, device_id, state, id);
create index sessions_user on sessions (domain_id, lower(user_name), id);
create index sessions_started on sessions (domain_id, started);
create index sessions_stopped on sessions (domain_id, stopped) where stopped is not null;
"""


def apply(db: Database) -> None:
    """Make them."""
    execute_all(db, SCHEMA)
