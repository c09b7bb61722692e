"""What each policy says once it is read: one noun per file, frozen, picklable."""
