"""Traces of single requests (`/debug/trace`): watchers, recording, and the transport of events to the watcher."""
