"""Load: many at once, long runs, forks, interrupts and ends in any order."""
