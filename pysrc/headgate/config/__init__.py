"""The configuration file: its shape, and the way from its spellings to the IR."""
