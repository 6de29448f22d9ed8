"""Tests of sallyport.areas.policy.bypass."""
