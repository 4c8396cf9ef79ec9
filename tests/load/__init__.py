"""Many at once, for long, forked, interrupted and ended in any order."""
