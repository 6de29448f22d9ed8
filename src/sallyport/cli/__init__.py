"""The command line. A command is imported only when it is used, so that every command starts fast.

A command runs an operation of the API. If the service is running, the operation runs in the service, and the command
reaches the service through its control socket. Otherwise the operation runs in the command's own process, which locks
the store. In both cases a change applies at once.

The commands of a package are in its `cli.py`. They depend only on `shell.command.CommandLine`, which is click's context
object. Results go to standard output and notes to standard error. In both, terminal control sequences are replaced.

main        the groups of commands
line        the implementation of CommandLine: connection and output
connection  requests to the running service, or to `local`, which runs the requests in this process
handover    exchange of files between root's command and the service
output      tables, JSON, CSV
check       a test login with the blocking client in `radius`; `diagnosis` explains a failure
doctor      runs the `checks` and prints their findings
demo        the service with simulated devices (`demo_devices`); `demo_story` has the steps
serve       the command that runs the service, and its log level
"""
