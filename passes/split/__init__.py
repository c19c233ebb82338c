"""From one planned function to a host function that calls device functions."""
