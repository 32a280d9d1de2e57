"""How do the parts become a loop, and what runs beside them?"""
