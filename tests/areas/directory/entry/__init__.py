"""Tests of sallyport.areas.directory.entry."""
