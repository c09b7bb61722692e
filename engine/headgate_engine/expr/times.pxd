# Durations and timestamps in expressions. Nothing to cimport: the compiler of expressions imports the tables.
