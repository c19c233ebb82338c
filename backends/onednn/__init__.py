"""``onednn``: products of matrices, convolutions and softmax by oneDNN, with what follows them."""
