def is_phone_number(candidate: bytes) -> bool:
    """Return whether digits with separators are a valid telephone number.

    A number without `+` is valid when a caller in one of the regions of ci/phone_rules.py could mean it. The answer is
    that of `phonenumbers.is_valid_number(phonenumbers.parse(...))`; letters and extensions are not read.
    """
