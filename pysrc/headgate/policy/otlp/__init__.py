"""Spans and log records for a collector, over OTLP."""
