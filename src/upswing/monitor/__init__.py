"""How is the loop doing, and who hears of it? Conditions, metrics, alerts and reports."""
