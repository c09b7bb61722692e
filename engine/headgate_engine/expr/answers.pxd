# Nothing to cimport: expr.views reads the `llm.*` variables from READERS.
