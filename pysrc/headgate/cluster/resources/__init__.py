"""Our custom resources: tables of their fields, and the CRDs made from them."""
