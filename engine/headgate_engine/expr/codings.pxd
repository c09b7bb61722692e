# Encodings and digests in expressions. Nothing to cimport: the compiler of expressions imports the tables.
