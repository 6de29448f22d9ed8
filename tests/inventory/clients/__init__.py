"""Tests of sallyport.inventory.clients."""
