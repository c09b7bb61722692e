"""Small servers for trying the gateway out and for its tests. They use nothing of the gateway."""
