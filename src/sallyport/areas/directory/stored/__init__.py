"""People, groups and units in the store: the SQL of imports, lists and logins.

people, groups  write the people, groups and units of an import
rows            find, mark and rename their rows
memberships     the members of groups
changes         apply the changes of an LDIF file to stored entries
repo            queries for lists, nested members and logins
"""
