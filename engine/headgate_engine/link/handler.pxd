# No C face: the engine reaches handlers by the Python calls begin(), client_writable() and client_gone().
