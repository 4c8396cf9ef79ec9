"""Public functions that run models, or devices, for what can be measured of them."""
