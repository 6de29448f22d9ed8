"""What the command line asks: listen.senders."""

from collections.abc import Callable

from sallyport.base.clock import iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON, Row
from sallyport.listen.senders import UNKNOWN, Sender, Senders, sent_by


class Nothing(Arguments):
    """No arguments."""


def commands(senders: Senders, is_client: Callable[[str], bool]) -> dict[str, Command]:
    """The commands of the listeners by name. is_client: whether a RADIUS client has an address by now."""

    async def listing(_: Nothing) -> JSON:
        for each in senders.all():
            if each.reason == UNKNOWN and is_client(each.host):
                senders.forget(each.host)
        return [_row(each) for each in senders.all()]

    return {"listen.senders": command(Nothing, listing)}


def _row(sender: Sender) -> Row:
    sent = sent_by(sender)
    return {
        "address": sender.host,
        "packets": sender.packets,
        "reason": sender.reason,
        "verdict": sender.verdict().value,
        "client": sender.client,
        "packet": sent.packet,
        "nas_identifier": sent.nas_identifier,
        "product": sent.product,
        "signed": sent.signed,
        "first": iso(sender.first_at),
        "last": iso(sender.last_at),
    }
