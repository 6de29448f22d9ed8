"""When directories are read without anybody asking: a schedule for each directory.

timing   when the next reading is due
repo     the SQL
service  sets schedules, and asks for the readings that are due
model, api, cli, commands
"""
