"""What the command line asks: listen.senders."""

from sallyport.base.clock import iso
from sallyport.base.command import JSON, Arguments, Command, command
from sallyport.listen.senders import Senders


class Nothing(Arguments):
    """No arguments."""


def commands(senders: Senders) -> dict[str, Command]:
    """The commands of the listeners by name."""

    async def listing(_: Nothing) -> JSON:
        return [
            {
                "address": each.host,
                "packets": each.packets,
                "reason": each.reason,
                "first": iso(each.first_at),
                "last": iso(each.last_at),
            }
            for each in senders.all()
        ]

    return {"listen.senders": command(Nothing, listing)}
