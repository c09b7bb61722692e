# Edits of a text are tuples (start, stop, replacement, rule), ascending and without overlaps.
