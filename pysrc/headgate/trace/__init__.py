"""The trace of one request (`/debug/trace`): who waits for it, what is recorded, and the way to the watcher."""
