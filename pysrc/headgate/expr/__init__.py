"""Expressions (CEL): parsed and checked when a configuration is loaded, compiled to headgate_engine.expr."""
