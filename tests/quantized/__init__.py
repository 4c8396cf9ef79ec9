"""One file of tests per op family."""
