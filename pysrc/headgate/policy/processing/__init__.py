"""Requests and responses that pass through an external processor (Envoy's `ext_proc`)."""
