"""People, groups and units in the store: how an import writes them, and how they are listed and found.

people, groups  how an import writes them
rows            how it finds, marks and renames their rows
memberships     the members of groups
changes         the changes of an LDIF file, applied to known entries
repo            lists, nested members, and what a login asks
"""
