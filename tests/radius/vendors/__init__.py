"""Tests of sallyport.radius.vendors, with real requests of products in packets/."""
