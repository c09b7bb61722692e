"""Processes: one supervisor that owns configuration and sockets, workers that own connections."""
