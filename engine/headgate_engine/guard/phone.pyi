def is_phone_number(candidate: bytes) -> bool:
    """Return whether digits with separators are a valid telephone number.

    A number without `+` is valid if a caller in one of the regions of ci/phone_rules.py could dial it. The result is
    that of `phonenumbers.is_valid_number(phonenumbers.parse(...))`, but letters and extensions are not read.
    """
