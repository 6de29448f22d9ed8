"""The exit statuses of all commands. The reference and the man page show this table."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of a command. meaning: one sentence for the documentation."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> "ExitStatus":
        """Return a member with its meaning."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        return member

    DONE = 0, "The command succeeded."
    FAILED = 1, "The command was refused or failed. A command that checks something has found a fault."
    USAGE = 2, "Wrong usage: an unknown command or option, or a wrong value."
    WOULD_CHANGE = 3, "`apply --diff`: `apply` would change something."
    INTERRUPTED = 130, "Ctrl-C has ended the command."
