"""The checks of `sallyport doctor`. Each check is a function, and `doctor` lists all checks explicitly:

    def check_something(examination: Examination) -> Iterator[Finding]:
        yield ok("all is well")

A check yields a finding for each thing that it examines, and changes nothing. A SallyportError in a check is reported
as a problem. If no service runs, the checks open the store as other commands do, except if that would create or migrate
the store.

model         Finding, Examination
machine       the host: settings, files, disk, ports, clock
data          the database file and its integrity
certificates  certificates for EAP and RadSec
reach         connections to the servers that logins need: MFA providers and directories
service       data of the service: clients, domains, dropped packets, devices, agents, imports of directories, nodes
"""
