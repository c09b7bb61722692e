"""OpenAPI 3 documents as tools: what there is to call, how arguments become a request and its answer a result."""
