"""The composition: it builds the service from its settings, and runs it.

app           builds the areas in order, and connects them
installation  the entrances of what belongs to no area: certificates, nodes, workers, settings, copies of the store
nodes         this node among the others; certificates: when the certificates of domains expire
build         opens the store and makes the app
operations    the operations, pages and console of all areas; commands: the requests of the control socket
control       the Unix socket of the command line
serve         the nursery of the service; supervise: its watchdog; reload: its settings
sockets       its listeners; activation: those that systemd has opened
garbage       Python's garbage collector beside many waiting logins
"""
