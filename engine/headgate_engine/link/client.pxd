# No C face: calls from Python through the engine's pools, see client.pyi.
