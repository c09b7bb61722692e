# The strings extension of expressions: tables only, used when an expression is compiled.
