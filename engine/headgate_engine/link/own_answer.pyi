"""C face only: answers that backends send by themselves."""
