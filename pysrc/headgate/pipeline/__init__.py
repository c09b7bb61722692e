"""From the frozen configuration to the plans that the engine runs."""
