"""What the products of vendors/ send, in packets/, and what is made of it."""
