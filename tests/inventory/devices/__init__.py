"""Tests of sallyport.inventory.devices."""
