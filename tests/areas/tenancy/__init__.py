"""Tests of sallyport.areas.tenancy."""
