"""Sums of money in shared memory; see money.pxd."""

from headgate_engine.shared.segment cimport SLOT_MONEY, Segment

import struct


# The slot of an object that has none in a segment (made with __new__ alone); its sum is never read.
cdef MoneySlot nowhere


cdef class Money:
    def __cinit__(self):
        self.slot = &nowhere

    def __init__(self, Segment segment not None, bytes key not None):
        self.held = segment.series(key, SLOT_MONEY, sizeof(MoneySlot), NULL)
        self.slot = <MoneySlot*>self.held.memory


def dollars(picos):
    """Return picodollars as an exact number of dollars."""
    from decimal import Decimal

    return Decimal(picos).scaleb(-12)


def slot_dollars(bytes raw not None):
    """Return the sum in a copy of a slot (Segment.entries()) as an exact number of dollars."""
    micros, picos = struct.unpack("=qq", raw)
    return dollars(micros * 1000000 + picos)
