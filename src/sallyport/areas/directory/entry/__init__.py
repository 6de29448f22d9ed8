"""The meaning of a directory's entries, without I/O.

entry              the entries of any source, interpreted as people, groups and units
descriptions       attribute names with options (RFC 4512), and what each option means
dn                 distinguished names: their parts, and the form in which they are compared (RFC 4514)
ldif               LDIF files (RFC 2849)
secret_attributes  attributes with secrets, which no field mapping may use
status             the status of an account, in the directories of several products
wire               entries as JSON: between an agent and the service, and on disk
"""
