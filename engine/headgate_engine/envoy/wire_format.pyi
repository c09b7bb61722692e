# Everything here is C: drivers and the readers of messages call it.
