"""Tests of sallyport.areas.devices."""
