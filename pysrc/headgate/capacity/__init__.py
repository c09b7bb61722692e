"""Measures what a gateway carries: a load generator, built-in peers, and reports."""
