"""Translation of requests from the client's format to the provider's, one module per pair of formats."""
