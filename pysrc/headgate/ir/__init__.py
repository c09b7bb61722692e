"""The intermediate representation (IR) of a configuration: frozen values, without parsing and I/O.

A configuration file and a cluster give the same IR.
"""
