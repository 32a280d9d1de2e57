"""What training leaves behind, whole or not at all, and trusted only after a check of every byte.

| module     | its question                                                                |
|------------|-----------------------------------------------------------------------------|
| `manifest` | what is in a checkpoint?                                                     |
| `checking` | may it be loaded? (`verify`: neither torch nor a line of its code runs)      |
| `writing`  | how does it come to the disk?                                                |
| `reading`  | how do a model and its optimizer go on from it?                              |
| `shelf`    | which are there, which is the newest, which may go?                          |
"""
