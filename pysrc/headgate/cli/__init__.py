"""The commands `headgate` and `gwctl`."""
