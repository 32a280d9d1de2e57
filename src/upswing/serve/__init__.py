"""The embedded model server: one base and the adapters on it, OpenAI-shaped.

| module       | its question                                                            |
|--------------|-------------------------------------------------------------------------|
| `ports`      | what does the server need of whatever runs the model?                   |
| `asked`      | what does a client ask for?                                             |
| `answers`    | how does an answer look, whole and in a stream?                         |
| `problems`   | how is a client told that something went wrong?                         |
| `spelling`   | what of the tokens drawn so far can be shown already?                   |
| `tool_calls` | does the model want tools called?                                       |
| `sampling`   | which token comes next, and how likely was it?                          |
| `schedule`   | whose request joins the batch?                                          |
| `memory`     | which tokens did the model say this text with?                          |
| `words`      | what did the model write when it made this call?                        |
| `service`    | the routes                                                              |
"""
