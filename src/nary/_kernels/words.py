"""Codewords: distances between them, and the search for a random code whose words lie far apart."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ._core import TILE, _native, check_array, expect, thread_count


def pad_words(symbols: NDArray[np.int16]) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Codewords as the distance kernels want them: bytes if they fit, rows padded with zeros to a multiple of 64."""
    expect(symbols.ndim == 2, "a (classes, columns) matrix", f"{symbols.ndim} axes")
    expect(symbols.size == 0 or int(symbols.min()) >= 0, "codewords that use every column", "UNUSED entries")
    K, L = symbols.shape
    dtype = np.uint8 if symbols.size == 0 or int(symbols.max()) < 256 else np.uint16
    words = np.zeros((K, -(-L // TILE) * TILE), dtype)
    words[:, :L] = symbols
    return words


def distances(
    words: NDArray[np.uint8] | NDArray[np.uint16], first: int, last: int, absolute: bool, n_threads: int = 1
) -> NDArray[np.int32]:
    """Distances of words first..last-1 to all words (both as `pad_words` makes them): (last - first, K)."""
    dtype = words.dtype.type
    expect(dtype in (np.uint8, np.uint16), "words in uint8 or uint16", str(words.dtype))
    check_array(words, "words", dtype, 2)
    expect(words.shape[1] % TILE == 0, f"rows padded to a multiple of {TILE}", f"{words.shape[1]}")
    expect(0 <= first <= last <= words.shape[0], f"rows within 0:{words.shape[0]}", f"{first}:{last}")
    largest = words.shape[1] * (int(words.max(initial=0)) if absolute else 1)
    expect(largest < 1 << 31, "columns x largest symbol below 2^31", f"{words.shape[1]} columns, {largest} in all")
    out = np.empty((last - first, words.shape[0]), np.int32)
    _native.distances(words, first, absolute, thread_count(n_threads), out)
    return out


def search_random(
    seed: int,
    n_candidates: int,
    n_classes: int,
    n_columns: int,
    n_symbols: int,
    absolute: bool,
    distinct_columns: bool,
    n_threads: int = 1,
) -> tuple[NDArray[np.int16], int] | None:
    """The first candidate code with the largest minimum distance, and that distance.

    None if no candidate could be given distinct columns in a million draws of one of them.
    """
    expect(0 <= seed < 1 << 64, "a seed of 64 bits", str(seed))
    expect(1 <= n_candidates < 1 << 31, "1 to 2^31 - 1 candidates", str(n_candidates))
    expect(n_classes >= 2 and n_columns >= 1, "at least 2 classes and 1 column", f"{n_classes}, {n_columns}")
    expect(2 <= n_symbols <= 1 << 15, "2 to 32768 symbols", str(n_symbols))
    expect(n_columns * n_symbols < 1 << 31, "columns x symbols below 2^31", f"{n_columns} x {n_symbols}")
    best = np.empty((n_classes, n_columns), np.uint8 if n_symbols <= 256 else np.uint16)
    threads = min(thread_count(n_threads), n_candidates)
    first, distance, portion = 0, -1, threads
    while first < n_candidates:  # in portions of about half a second, so that a search can be interrupted
        start, last = time.perf_counter(), min(first + portion, n_candidates)
        index, better = _native.search_random(
            seed, first, last, distance, n_symbols, absolute, distinct_columns, threads, best
        )
        distance = distance if index < 0 else int(better)
        if time.perf_counter() - start < 0.25:
            portion *= 2
        first = last
    return None if distance < 0 else (best.astype(np.int16), distance)
