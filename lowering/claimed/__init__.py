"""Functions that backends claimed (`devscope.backends`): taken out of a planned module, compiled, put back."""
