"""What is a job asked to do, how far is it, and what follows when it fails? Values in, values out."""
