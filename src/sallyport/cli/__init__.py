"""The command line. Commands are imported when they are used, so that one answers at once.

A command runs an operation of the API: in the running service through its socket, or on the store under its lock where
none runs, so that a change holds at once. The commands of an area are in its own `cli.py`, and see nothing of this
package but `base.command.CommandLine`, which is click's context object. Standard output carries what was asked for,
notes go to standard error, and neither can command a terminal.

main        the groups of commands, exit codes
line        satisfies CommandLine: connection and output together
connection  the running service, or `local`: the same requests in this process
output      tables, JSON, CSV
check       a login with a diagnosis, over `radius`, a small blocking client
doctor      what is wrong or weak, over the lists of `checks`
demo        the service with simulated devices (`demo_devices`), and what it makes of them (`demo_story`)
serve       the service itself, and what it logs
"""
