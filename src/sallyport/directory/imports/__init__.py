"""Imports: from a file, from what an agent has sent, or from a directory that is read now, to people in the store.

    ldif or a reading --convert--> prepared lines --applier--> the store --finisher--> fields and numbers of members

lines     the two forms of an entry on disk
child     starts the child process, with its limits
convert   the code of the child process, which reads a file through
files     where the files are
applier   short transactions
telling   when logins hear of it
finisher  what follows from all entries together
remover   a directory that goes, with everybody in it
turns     whose turn it is, of domains and tenants
service   jobs: their restart, their end
"""
