"""What a measurement is told as: a JSON document, text for a terminal, and a page."""
