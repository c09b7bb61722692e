# The strings extension of expressions. Nothing to cimport: the compiler of expressions imports the tables.
