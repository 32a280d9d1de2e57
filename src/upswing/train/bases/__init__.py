"""Which base models can be had without a download, and how are they loaded?"""
