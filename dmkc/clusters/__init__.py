"""Clusters described by one small file: `open` starts what it says and gives a client."""

from dmkc.clusters.network import InsecureClusterWarning, make_certificates
from dmkc.clusters.opening import open_cluster as open
from dmkc.clusters.schema import Config, read
from dmkc.clusters.start import ClusterError
from dmkc.clusters.values import ConfigError

__all__ = [
    "ClusterError",
    "Config",
    "ConfigError",
    "InsecureClusterWarning",
    "make_certificates",
    "open",
    "read",
]
