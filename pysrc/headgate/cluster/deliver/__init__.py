"""The delivery of configuration from the controller to gateways: a discovery stream and both of its ends."""
