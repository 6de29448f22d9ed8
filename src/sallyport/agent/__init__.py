"""The agents: programs that run on a machine, or near a directory, to which the service cannot connect. They send HTTPS
requests to the service. Their code does not import the packages store and web.

Each agent has one configuration file (TOML, mode 0600). The command `sallyport agent key create` prints this file, with
the service's URL and an enrolment key. When an agent starts for the first time, it generates its own key, and sends the
hash of this key to the service. Then the agent replaces the enrolment key in the file with its own key. The agent
renews its key long before the key expires. The file contains a valid key at every moment.

Both agents use these modules, which need only the standard library, so that an agent starts quickly and stays small:

    file         reads and rewrites the configuration file, and locks the state directory
    service      the HTTPS client of the service, with one connection
    keys         the agent's own key: enrolment and renewal

    endpoint     the agent that manages the accounts of a machine
    directory    the agent that reads an LDAP directory
    templates    the initial configuration files of agents, and their systemd units
    cli          `sallyport agent install` and `uninstall`; key_cli: `sallyport agent key`, on the host of the service
    program      the program `sallyport-agent`, of hosts that have the agents alone
"""
