"""Pages about endpoints.

instances  the machines
groups     endpoint groups, which give their users access to their instances
users      endpoint users
access     the forms for users and methods, which instances and groups have in common
"""
