"""Clusters described by one small file: `open` starts what it says and gives a client."""

from dmkc.cluster.network import InsecureClusterWarning, make_certificates
from dmkc.cluster.opening import open_cluster as open
from dmkc.cluster.schema import Config, read
from dmkc.cluster.start import ClusterError
from dmkc.cluster.values import ConfigError

__all__ = [
    "ClusterError",
    "Config",
    "ConfigError",
    "InsecureClusterWarning",
    "make_certificates",
    "open",
    "read",
]
