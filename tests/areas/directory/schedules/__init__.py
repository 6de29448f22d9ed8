"""Tests of sallyport.areas.directory.schedules."""
