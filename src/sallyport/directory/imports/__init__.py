"""Imports: from a file, from an agent's run, or from a directory that is read now, to people in the store.

    ldif or a reading --convert--> prepared lines --applier--> the store --finish--> fields and numbers of members

job        a job, and what its transactions know
service    jobs: their restart, their end
scheduler  which jobs run, of all domains and tenants
collect    reads a directory into a file
files      the files of jobs
lines      prepared lines: an entry ready to be written
child      starts the child process, with its limits
convert    the code of the child process, which reads a file through
applier    short transactions
finish     what follows from all entries together
"""
