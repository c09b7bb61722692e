"""Expressions in CEL (https://github.com/google/cel-spec).

They are parsed, checked and compiled to nodes of headgate_engine.expr when a configuration is loaded.
"""
