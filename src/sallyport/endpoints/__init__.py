"""Endpoint users: the people of a domain, whose passwords are its `local` first factor.

The login path asks `EndpointUsers.cached`, which never waits; a user that is not in memory is loaded by `load` once,
also the answer that there is none. A change drops the user from memory before it returns.
"""
