"""Small, slow implementations of the methods' ancestors, to check the others against.

They hold n x n kernel matrices in memory and are meant for a few hundred rows at most.
"""

from dmkc.reference.itersvr import IterSVR, iterative_svr
from dmkc.reference.sdp import Relaxed, mmc_sdp

__all__ = ["IterSVR", "Relaxed", "iterative_svr", "mmc_sdp"]
