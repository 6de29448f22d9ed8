"""Tests of sallyport.areas.directory.mappings."""
