"""How does Agent Zero join the loop? A plugin that records what its agents do, and a profile that runs the loop."""
