"""The ledger of virtual keys: what each has spent, by team, model and day."""
