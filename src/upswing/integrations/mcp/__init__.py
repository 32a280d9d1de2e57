"""How do assistants ask the loop? A server of the Model Context Protocol, over standard input or HTTP."""
