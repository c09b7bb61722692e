# Log probabilities of tokens, between formats; for Python and for readers, which import the functions.
