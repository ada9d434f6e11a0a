"""k-means, on rows and on kernels."""
