# Encodings and digests of expressions: tables only, used when an expression is compiled.
