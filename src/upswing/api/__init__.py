"""What does the loop answer on its port? Routes as data, one small ASGI application."""
