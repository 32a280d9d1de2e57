"""What do all stages stand on? The bus, the store, objects, processes and tasks."""
