# IP addresses and networks of expressions: tables only, used when an expression is compiled.
