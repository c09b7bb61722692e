"""Between the file and the resources of a cluster: `headgate convert`."""
