"""The process `headgate controller`."""
