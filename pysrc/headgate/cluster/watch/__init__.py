"""Informers: what a cluster has, kept up to date."""
