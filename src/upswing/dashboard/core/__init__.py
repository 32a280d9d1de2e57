"""What the page decides and how it words things: functions of values."""
