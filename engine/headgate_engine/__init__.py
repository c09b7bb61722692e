"""The compiled half of Headgate: everything that runs for every request or every byte."""

__version__ = "0.1.0"
