"""The runs of directory agents, which send what they read in batches."""
