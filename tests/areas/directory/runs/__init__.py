"""Tests of sallyport.areas.directory.runs."""
