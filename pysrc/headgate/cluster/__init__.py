"""Access to a Kubernetes cluster."""
