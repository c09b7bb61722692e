"""Each policy between IR and engine: one file per policy, which builds its steps."""
