"""Images, with a class each or with objects in them."""
