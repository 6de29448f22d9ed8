"""Imports of people and groups into the store. An import comes from an uploaded file, from a directory agent, or from a
directory that the service reads.

    ldif or a reading --convert--> prepared lines --applier--> the store --finish--> mapped fields, member counts

job        a job, and the state that its transactions share
service    runs the jobs, and continues them after a restart
scheduler  chooses the jobs to run, across domains and tenants
handover   moves the jobs of a node that is gone to another node
readers    creates the reader of a directory from the directory's settings
collect    reads a directory into a file
files      stores the files of jobs
lines      the lines of a prepared file: entries that are ready to be written
child      starts the child process, with its limits
convert    converts a file to a prepared file, in the child process
applier    writes prepared lines in short transactions
finish     updates the values that depend on all entries together
"""
