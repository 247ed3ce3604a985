"""Relations: two marked entities in a sentence to the relation between them."""
