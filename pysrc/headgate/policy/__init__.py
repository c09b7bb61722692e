"""Compilation of policies from the IR to steps of the engine, one module per policy."""
