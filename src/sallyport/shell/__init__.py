"""How a package adds commands to the command line and to the control socket.

fields   options that come from the fields of a request body; secrets from standard input
options  options that many commands have, and types of options
command  commands of the control socket, and the connection of a command to the service
"""
