"""How do other programs join the loop? Each in a package of its own, over the ports that everybody has."""
