# Texts of durations and timestamps and their calendar: tables only, used when an expression is compiled.
