"""What do clients of Anthropic's Messages API say and hear? Its requests, answers and streams as values, in terms of chat."""
