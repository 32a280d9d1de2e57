"""What does the gateway decide? Which episode, which model, what is recorded: values in, values out."""
