"""Tests of sallyport.areas.clients."""
