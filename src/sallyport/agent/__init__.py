"""The agents are programs that run on a machine, or near a directory, to which the service cannot connect. They send
HTTPS requests to the service. Their code does not import the packages store and web.

Each agent has one configuration file (TOML, mode 0600) with the service's URL and an enrolment key. The command
`sallyport agent key create` prints this file. At its first start an agent generates its own key, sends the hash of the
key to the service, and replaces the enrolment key in the file with its own key. It renews the key long before the key
expires. The file contains a valid key at every moment.

These modules are used by both agents and need only the standard library, so that an agent starts quickly and stays
small:

file         reading and rewriting the configuration file; the lock of the state directory
service      the HTTPS client of the service, with one connection; the back-off after a failure
keys         the agent's own key: enrolment and renewal

endpoint     the agent that manages the accounts of a machine
directory    the agent that reads an LDAP directory
templates    the initial configuration files of agents, and their systemd units
cli          `sallyport agent install`, `uninstall` and `key`
"""
