"""The checks of `sallyport doctor`: one function each, in the explicit lists of `doctor`.

    def check_something(examination: Examination) -> Iterator[Finding]:
        yield ok("all is well")

A check yields a finding for each thing that it has looked at. It changes nothing, and an error of ours that it raises
is a problem of its own. Where no service runs, the store is opened like any command does it, unless that would
migrate it or make it.

model    Finding, Examination
machine  settings, files, disk, ports, clock: what the service stands on
data     the database file and its integrity
certificates  what EAP and RadSec show, and take
reach    the servers that logins need: MFA providers and directories
service  clients, domains, senders, devices, readings of directories: what the service knows
"""
