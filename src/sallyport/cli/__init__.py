"""The command line. Groups are imported when they are used, so that a command answers at once.

A command is words for a person around one request: `connection.call` sends it to the running service through its
socket, or opens the store under its lock where none runs; both end in the same functions.
"""
