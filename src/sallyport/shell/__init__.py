"""How a package adds commands to the command line and to the control socket. `options` has the common options."""
