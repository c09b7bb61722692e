# Functions of the standard library of expressions: tables only, used when an expression is compiled.
