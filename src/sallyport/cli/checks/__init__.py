"""The checks of `sallyport doctor`. Each check is a function in one of the explicit lists in `doctor`:

    def check_something(examination: Examination) -> Iterator[Finding]:
        yield ok("all is well")

A check yields a finding for each thing that it examines. It changes nothing. A SallyportError that it raises is
reported as a problem. If no service runs, the store is opened as for other commands. It is not opened if that would
create or migrate it.

model         Finding, Examination
machine       the host: settings, files, disk, ports, clock
data          the database file and its integrity
certificates  certificates for EAP and RadSec
nodes         the nodes that use the same database
reach         connections to the servers that logins need: MFA providers and directories
service       data of the service: clients, domains, senders, devices, agents, reads of directories
"""
