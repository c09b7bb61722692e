"""What the next gateway learns of one that was killed; see spending.pxd.

A cell says with which batches of the ledger it was read (account.pxd), and the database has the number of the last one.
"""

from headgate_engine.limit.account cimport AMOUNTS, U_PICOS, U_REQUESTS, U_TOKENS, W_MINUTE, AccountSlot, SpendSlot
from headgate_engine.shared.area cimport HG_STORE_LONG
from headgate_engine.shared.kept cimport kept_slot
from headgate_engine.shared.segment cimport SLOT_BUCKET, Segment

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

BATCHES = b"spend batches\0"
ORIGIN = b"spend origin\0"

# The slot of objects that have none in a segment (made with __new__ alone).
cdef int64_t no_batch


cdef class SpendBatches:
    """The numbers of batches, of which none comes twice while the memory lasts."""

    def __cinit__(self):
        self.slot = &no_batch

    def __init__(self, Segment segment not None):
        self.held = kept_slot(segment, BATCHES, SLOT_BUCKET, sizeof(int64_t))
        self.slot = <int64_t*>self.held.memory

    @property
    def last(self):
        """The last number that was given, 0: none was."""
        return self.slot[0]

    def begin(self):
        """Give the next number."""
        HG_STORE_LONG(<uint64_t*>self.slot, <uint64_t>(self.slot[0] + 1))
        return self.slot[0]


cdef class SpendOrigin:
    """Says, as long as it lives, whose the spending in the memory is: a text, which lies in the memory as a key."""

    def __init__(self, Segment segment not None, bytes text not None):
        self.held = kept_slot(segment, ORIGIN + text, SLOT_BUCKET, sizeof(int64_t))


def uncarried(bytes value not None, int64_t batch):
    """Return of the slot of a cell what is in none of the batches up to `batch`."""
    cdef SpendSlot copy
    cdef uint64_t carried[5]
    cdef int at, note
    cdef int newest = -1
    if len(value) != sizeof(SpendSlot):
        raise ValueError("not the slot of a cell")
    memcpy(&copy, <char*>value, sizeof(SpendSlot))
    for note in range(2):
        if 0 < copy.batch[note] <= batch and (newest < 0 or copy.batch[note] > copy.batch[newest]):
            newest = note
    for at in range(AMOUNTS):
        carried[at] = 0 if newest < 0 else copy.carried[newest * AMOUNTS + at]
    return tuple([copy.total[at] - carried[at] for at in range(AMOUNTS)])


def batch_of(bytes value not None):
    """Return of the slot of SpendBatches the last number."""
    cdef int64_t last
    if len(value) != sizeof(int64_t):
        raise ValueError("not the slot of the numbers of batches")
    memcpy(&last, <char*>value, sizeof(int64_t))
    return last


def minute_of(bytes value not None):
    """Return of the slot of an account when its minute began (Unix seconds), and what its gateway has used in it."""
    cdef AccountSlot copy
    if len(value) != sizeof(AccountSlot):
        raise ValueError("not the slot of an account")
    memcpy(&copy, <char*>value, sizeof(AccountSlot))
    return copy.start[W_MINUTE], (copy.own[U_REQUESTS], copy.own[U_TOKENS], copy.own[U_PICOS])
