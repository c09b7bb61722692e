"""Limits whose counters several replicas share."""
