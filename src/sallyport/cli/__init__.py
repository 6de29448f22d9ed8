"""The command line. Each command is imported only when it is used, to start fast.

A command runs an operation of the API. If the service is running, the operation runs in the service, and the command
reaches it through the control socket. Otherwise the operation runs in this process, which locks the store. In both
cases a change applies at once. The commands of an area are in `cli.py` of its package. They depend only on
`base.command.CommandLine`, which is click's context object. Results go to standard output and notes to standard error;
control sequences in both are replaced.

main        the groups of commands, and exit codes
line        the implementation of CommandLine: connection and output
connection  requests to the running service, or to `local`, which runs them in this process
handover    files that root's command and the service exchange
output      tables, JSON, CSV
check      a test login with the blocking client in `radius`; `diagnosis` explains a failure
doctor     runs the `checks` and prints their findings
demo        the service with simulated devices (`demo_devices`); `demo_story` has the steps
serve       the command that runs the service, and its log level
"""
