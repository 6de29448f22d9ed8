"""Imports. The source is a file, an agent's run, or a directory that the service reads; the results are people and
groups in the store.

    ldif or a reading --convert--> prepared lines --applier--> the store --finish--> fields and numbers of members

job        a job, and the state that its transactions share
service    runs the jobs, and continues them after a restart
scheduler  chooses the jobs to run, across domains and tenants
handover   starts the jobs of a node that is gone at another node
collect    reads a directory into a file
files      stores the files of jobs
lines      prepared lines: entries ready to be written
child      starts the child process, with its limits
convert    prepares a file, in the child process
applier    writes prepared lines in short transactions
finish     updates the values that depend on all entries together
"""
