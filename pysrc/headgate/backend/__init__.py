"""What requests are forwarded to, where that needs more than bytes."""
