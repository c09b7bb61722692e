"""The load generator of `headgate bench` beside other ones."""
