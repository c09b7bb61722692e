"""What a request costs in instructions and in system calls, which other load on a machine does not change."""
