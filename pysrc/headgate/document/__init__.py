"""Documents with positions: nodes, scalar fields, secrets. Knows no field of the configuration."""
