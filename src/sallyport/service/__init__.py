"""The composition: it builds the service from its settings, and runs it.

app         connects the areas; logins, nodes, certificates and tasks are its parts
build       opens the store and makes the app
operations  the operations of all areas; commands: those of the control socket alone
control     the Unix socket of the command line
serve       the nursery of the service; sockets: its listeners; supervise: its watchdog and reload
garbage     Python's garbage collector beside many waiting logins
"""
