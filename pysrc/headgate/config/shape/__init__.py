"""The closed shape of the configuration file, as tables by noun. `vocabulary` has the words they are
written in.
"""
