"""The SQL of how agents behave, and of accounts that are taken over."""

import json
from collections.abc import Mapping
from typing import Final

from sallyport.base.agentwire.state import Settings
from sallyport.base.wire import JSON, decode
from sallyport.store.model import Tx

WHOLE_DOMAIN: Final = 0
"""The instance_id of a domain's settings, which hold where a machine has none of its own."""


def said(tx: Tx, domain_id: int, instance_id: int = WHOLE_DOMAIN) -> dict[str, JSON]:
    """What was said for a domain, or for a machine, by the fields' names on the wire."""
    sql = "select fields from agent_settings where domain_id = :d and instance_id = :i"
    found = json.loads(tx.value(str, sql, d=domain_id, i=instance_id) or "{}")
    return found if isinstance(found, dict) else {}


def say(tx: Tx, domain_id: int, instance_id: int, fields: Mapping[str, JSON]) -> None:
    """Keep what is said in place of what was; nothing said leaves no row."""
    tx.execute("delete from agent_settings where domain_id = :d and instance_id = :i", d=domain_id, i=instance_id)
    if fields:
        text = json.dumps(dict(fields), sort_keys=True)
        tx.insert("agent_settings", ("domain_id", "instance_id", "fields"), [(domain_id, instance_id, text)])


def merged(tx: Tx, domain_id: int, instance_id: int) -> dict[str, JSON]:
    """A machine's own settings over its domain's."""
    return {**said(tx, domain_id), **(said(tx, domain_id, instance_id) if instance_id else {})}


def of_instance(tx: Tx, instance_id: int) -> Settings:
    """What an agent is told of how to behave."""
    domain_id = tx.value(int, "select domain_id from endpoint_instances where id = :id", id=instance_id)
    return decode(Settings, merged(tx, domain_id or 0, instance_id))


def takeovers(tx: Tx, instance_id: int) -> list[str]:
    """The accounts of a machine that may be managed though they were there before, by name in order."""
    sql = "select account as name from agent_takeovers where instance_id = :i order by account"
    return tx.all(_name, sql, i=instance_id)


def take_over(tx: Tx, instance_id: int, account: str, at: int) -> None:
    """Let an agent manage an account; again changes nothing."""
    sql = "insert into agent_takeovers (instance_id, account, at) values (:i, :account, :at) on conflict do nothing"
    tx.execute(sql, i=instance_id, account=account, at=at)


def give_back(tx: Tx, instance_id: int, account: str) -> None:
    """Let an agent manage an account no more."""
    tx.execute(
        "delete from agent_takeovers where instance_id = :i and account = :account", i=instance_id, account=account
    )


def _name(*, name: str) -> str:
    return name
