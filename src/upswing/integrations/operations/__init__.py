"""What may an operator or an agent ask of the loop? Operations, for assistants over MCP and for Agent Zero's rl-trainer."""
