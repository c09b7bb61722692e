"""Messages of Envoy's protocols that are written and read for every request."""
