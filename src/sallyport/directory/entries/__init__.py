"""People, groups and units in the store: how an import writes them, and how they are listed and looked for.

people, groups  what an import writes
edges           who is a member of what
changes         what an LDIF file of changes does to what is there
repo            lists, nested members, and what a login asks
"""
