FAULTS: dict[int, str]
