"""What do the loop's own figures mean? Values in, values out."""
