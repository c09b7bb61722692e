# IP addresses and networks in expressions. Nothing to cimport: the compiler of expressions imports the tables.
