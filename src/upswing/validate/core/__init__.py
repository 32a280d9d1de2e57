"""May this model ship? Tasks, checkers, the comparison and the verdict: values in, values out."""
