"""One module per pair of formats: the client's request in the provider's words."""
