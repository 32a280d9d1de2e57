"""May this model ship? Tasks, how answers are checked, and what follows from the comparison."""
