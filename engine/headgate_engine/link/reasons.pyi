REPLY_IDS: dict[str, int]
