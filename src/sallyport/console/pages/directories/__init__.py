"""Pages about directories.

directories  the list, the page of a directory, and its removal
settings     the settings of a directory, their test, and the schedule of its readings
imports      readings and imports
mappings     the field mapping of a directory
people       the people and groups that were imported
finding      functions that find directories and schedules
"""
