"""What pages are made of: the frame, cards, tables, fields, charts, and actions that are confirmed."""
