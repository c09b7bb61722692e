"""Settings of the policies, one policy per file. All values are frozen and picklable."""
