"""The command line. Each command is imported when it is used, so that it starts at once.

A command runs an operation of the API: in the running service through its socket, or on the store under its lock where
none runs, so that a change holds at once. The commands of an area are in its own `cli.py`, and see nothing of this
package but `base.command.CommandLine`, which is click's context object. Results go to standard output and notes to
standard error; neither can send control sequences to a terminal.

main        the groups of commands, exit codes
line        satisfies CommandLine: connection and output together
connection  the running service, or `local`: the same requests in this process
output      tables, JSON, CSV
check       a login over `radius`, a small blocking client, and its `diagnosis`
doctor      the findings of `checks`
demo        the service with simulated devices (`demo_devices`), and its steps (`demo_story`)
serve       the service itself, and what it logs
"""
