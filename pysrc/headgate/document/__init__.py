"""Documents with positions: nodes, scalar fields and secrets. This package does not know the configuration's fields."""
