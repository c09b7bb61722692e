"""What runs a gateway: objects of the cluster, or processes of this machine."""
