"""Each policy between file and IR: one file per policy, `parse` and `dump`; `table` lists them."""
