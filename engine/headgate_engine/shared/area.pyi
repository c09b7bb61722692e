"""Areas of the shared segment; see area.pxd.

Each change becomes visible by one store. If a process dies in the middle of a change, at worst memory is lost.
"""
