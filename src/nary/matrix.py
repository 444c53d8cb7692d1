"""CodeMatrix: the value every design makes and every stage reads; its validity, its distances, its file form."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from . import measures
from ._check import integer, plural

UNUSED = -1
MAX_SYMBOLS = 32767  # of a column: symbols are int16
_SPARSE_BELOW = 0.25  # share of used entries under which the sparse form is the smaller one
_FORMAT = "nary.CodeMatrix"
_VERSION = 1
_SUMMARY_CLASSES = 5000  # up to here a summary measures all pairs of classes
_SUMMARY_COLUMNS = 2000  # and all pairs of columns


class CodeMatrix:
    """An immutable code: `symbols[c, s]` is class c's symbol in column s, 0..alphabet[s]-1, or UNUSED (-1).

    Parameters
    ----------
    symbols : array-like of int, shape (n_classes, n_columns)
        The code. Codewords (rows) must differ and no column may be constant.
    alphabet : int or array-like of int, shape (n_columns,), optional
        The number of symbols of each column; by default the largest symbol of the column plus one.

    A code that uses less than a quarter of its entries is kept as a list of the used ones; `symbols` is then made anew
    at each call, and `entries`, `column` and `block` read it without that cost.

    Examples
    --------
    >>> from nary import CodeMatrix
    >>> code = CodeMatrix([[0, 0, 1], [1, 0, 2], [2, 1, 0]])
    >>> code.n_classes, code.n_columns, code.alphabet.tolist()
    (3, 3, [3, 2, 3])
    >>> code.min_distance("hamming")
    2.0
    """

    __slots__ = ("_alphabet", "_classes", "_dense", "_n_classes", "_starts", "_used_symbols")

    _alphabet: NDArray[np.int16]
    _dense: NDArray[np.int16] | None  # the dense form, or else the three arrays of the sparse form:
    _starts: NDArray[np.int64]  # column s's entries are starts[s] : starts[s + 1]
    _classes: NDArray[np.int32]  # ascending within a column
    _used_symbols: NDArray[np.int16]
    _n_classes: int

    def __init__(self, symbols: ArrayLike, alphabet: ArrayLike | None = None) -> None:
        dense = _integers(symbols, "a code matrix")
        if dense.ndim != 2 or dense.shape[0] < 2 or dense.shape[1] < 1:
            raise ValueError(
                "a code matrix must have shape (n_classes, n_columns) with at least 2 classes and 1 column; got shape "
                f"{dense.shape}. Give one row of symbols for each class."
            )
        classes_by_column = np.nonzero(dense.T != UNUSED)
        self._set(classes_by_column[1], classes_by_column[0], dense.T[classes_by_column], dense.shape, alphabet)

    @classmethod
    def from_entries(
        cls,
        classes: ArrayLike,
        columns: ArrayLike,
        symbols: ArrayLike,
        n_classes: int,
        n_columns: int,
        alphabet: ArrayLike | None = None,
    ) -> CodeMatrix:
        """The code with `symbols[e]` at `(classes[e], columns[e])` and UNUSED everywhere else."""
        shape = (integer(n_classes, "n_classes", 2), integer(n_columns, "n_columns", 1))
        at = [_integers(values, name).ravel() for values, name in ((classes, "classes"), (columns, "columns"))]
        said = _integers(symbols, "symbols").ravel()
        if not at[0].size == at[1].size == said.size:
            raise ValueError(
                "classes, columns and symbols must have the same length; got "
                f"{at[0].size}, {at[1].size} and {said.size}. Give one of each for every used entry."
            )
        for values, name, high in ((at[0], "classes", shape[0]), (at[1], "columns", shape[1])):
            if values.size and (values.min() < 0 or values.max() >= high):
                raise ValueError(f"{name} must lie in 0..{high - 1}; got {values.min()}..{values.max()}.")
        code = cls.__new__(cls)
        order = np.lexsort((at[0], at[1])) if not _ascending(at[1], at[0]) else slice(None)
        code._set(at[0][order], at[1][order], said[order], shape, alphabet)
        return code

    @classmethod
    def from_signs(cls, signs: ArrayLike) -> CodeMatrix:
        """A binary or ternary code in the usual notation: -1 and +1 for the two symbols, 0 for UNUSED."""
        given = _integers(signs, "a matrix of signs")
        if given.size and (given.min() < -1 or given.max() > 1):
            raise ValueError(f"signs must be -1, 0 or +1; got values from {given.min()} to {given.max()}.")
        return cls(np.where(given == 0, UNUSED, given > 0), 2)

    @classmethod
    def from_one_based(cls, symbols: ArrayLike, alphabet: ArrayLike | None = None) -> CodeMatrix:
        """A code in the paper's notation: symbols 1..N, and 0 for UNUSED."""
        given = _integers(symbols, "a code matrix")
        if given.size and given.min() < 0:
            raise ValueError(f"symbols counted from 1 must be at least 0 (0: unused); got {given.min()}.")
        return cls(given - 1, alphabet)

    def _set(
        self,
        classes: NDArray[np.int64],
        columns: NDArray[np.int64],
        symbols: NDArray[np.int64],
        shape: tuple[int, ...],
        alphabet: ArrayLike | None,
    ) -> None:
        """Checks the used entries, sorted by column and class, and keeps them in the smaller form."""
        K, L = shape
        starts = np.searchsorted(columns, np.arange(L + 1)).astype(np.int64)
        low, high = _column_ranges(symbols, starts)
        sizes = _alphabet(alphabet, high, L)
        _check_symbols(classes, columns, symbols, low, high, sizes)
        self._n_classes, self._alphabet = K, sizes
        self._starts, self._classes, self._used_symbols = (
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.int16),
        )
        self._dense = None
        if symbols.size < _SPARSE_BELOW * K * L:
            self._starts, self._classes = starts, classes.astype(np.int32)
            self._used_symbols = symbols.astype(np.int16)
        else:
            self._dense = np.full((K, L), UNUSED, np.int16)
            self._dense[classes, columns] = symbols
        self._freeze()
        _check_codewords(classes, columns, symbols, K)

    def _freeze(self) -> None:
        for array in (self._alphabet, self._starts, self._classes, self._used_symbols, self._dense):
            if array is not None:
                array.flags.writeable = False

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return self._n_classes

    @property
    def n_columns(self) -> int:
        """L, the number of columns."""
        return int(self._alphabet.size)

    @property
    def n_symbols(self) -> int:
        """N, the number of symbols of the column that has most."""
        return int(self._alphabet.max())

    @property
    def alphabet(self) -> NDArray[np.int16]:
        """The number of symbols of each column: (L,)."""
        return self._alphabet

    @property
    def shape(self) -> tuple[int, int]:
        """(K, L)."""
        return self.n_classes, self.n_columns

    @property
    def is_sparse(self) -> bool:
        """Whether only the used entries are kept."""
        return self._dense is None

    @property
    def n_used(self) -> int:
        """How many entries are not UNUSED."""
        return int(self._classes.size if self._dense is None else np.count_nonzero(self._dense != UNUSED))

    @property
    def is_full(self) -> bool:
        """Whether every class takes part in every column."""
        return self.n_used == self.n_classes * self.n_columns

    @property
    def symbols(self) -> NDArray[np.int16]:
        """The whole matrix, (K, L), read-only; a sparse code makes it anew at each call."""
        if self._dense is not None:
            return self._dense
        whole = self.block(0, self.n_columns)
        whole.flags.writeable = False
        return whole

    def block(self, first: int, last: int) -> NDArray[np.int16]:
        """Columns first..last-1 as a (K, last - first) matrix."""
        if self._dense is not None:
            return np.asarray(self._dense[:, first:last])
        begin, end = self._starts[first], self._starts[last]
        out = np.full((self.n_classes, last - first), UNUSED, np.int16)
        columns = np.repeat(np.arange(last - first), np.diff(self._starts[first : last + 1]))
        out[self._classes[begin:end], columns] = self._used_symbols[begin:end]
        return out

    def column(self, s: int) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
        """The classes that take part in column s, ascending, and their symbols."""
        if self._dense is not None:
            classes = np.flatnonzero(self._dense[:, s] != UNUSED).astype(np.int32)
            return classes, self._dense[classes, s]
        begin, end = self._starts[s], self._starts[s + 1]
        return self._classes[begin:end], self._used_symbols[begin:end]

    def word(self, c: int) -> NDArray[np.int16]:
        """The codeword of class c: (L,)."""
        if self._dense is not None:
            return np.asarray(self._dense[c])
        word = np.full(self.n_columns, UNUSED, np.int16)
        mine = np.flatnonzero(self._classes == c)
        word[np.searchsorted(self._starts, mine, side="right") - 1] = self._used_symbols[mine]
        return word

    def entries(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int16]]:
        """All used entries as (classes, columns, symbols), by column and then by class."""
        if self._dense is not None:
            columns, classes = np.nonzero(self._dense.T != UNUSED)
            return classes.astype(np.int32), columns, self._dense[classes, columns]
        columns = np.repeat(np.arange(self.n_columns), np.diff(self._starts))
        return self._classes, columns, self._used_symbols

    def to_sparse(self) -> sp.csc_array:
        """The code as a SciPy matrix in the paper's notation: symbols 1..N, and 0 (nothing stored) for UNUSED."""
        classes, columns, symbols = self.entries()
        return sp.csc_array((symbols.astype(np.int32) + 1, (classes, columns)), shape=self.shape)

    def distances(self, distance: str = "hamming") -> NDArray[np.float64]:
        """Distances between all pairs of codewords, (K, K), by `measures.distances`."""
        return measures.distances(self, distance)

    def min_distance(self, distance: str = "hamming") -> float:
        """rho: the smallest distance between two codewords."""
        return measures.min_distance(self, distance)

    def column_correlation(self) -> NDArray[np.float64]:
        """Pearson correlation between the columns, (L, L)."""
        return measures.column_correlation(self)

    def summary(self) -> CodeSummary:
        """The code's size, use, distances and column correlation, to print or to read field by field."""
        few = self.n_classes <= _SUMMARY_CLASSES
        return CodeSummary(
            self.n_classes,
            self.n_columns,
            (int(self.alphabet.min()), int(self.alphabet.max())),
            self.n_used / (self.n_classes * self.n_columns),
            measures.min_distance(self, "hamming") if few else None,
            measures.mean_distance(self, "hamming") if few else None,
            measures.min_distance(self, "absolute") if few else None,
            measures.mean_distance(self, "absolute") if few else None,
            measures.mean_absolute_correlation(self) if self.n_columns <= _SUMMARY_COLUMNS else None,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the code to a NumPy .npz file of plain arrays (no pickle); `load` reads it."""
        classes, columns, symbols = self.entries()
        content = {"symbols": self._dense} if self._dense is not None else {
            "classes": classes, "columns": columns, "used_symbols": symbols,
        }  # fmt: skip
        with open(path, "wb") as file:
            np.savez_compressed(
                file,
                format=np.array(_FORMAT),
                version=np.array(_VERSION),
                shape=np.array(self.shape),
                alphabet=self._alphabet,
                **content,
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CodeMatrix:
        """Reads a code that `save` wrote, and checks it as if it were new."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                content = {key: file[key] for key in file.files}
        except (zipfile.BadZipFile, ValueError, EOFError, AttributeError) as error:
            raise ValueError(f"{path} is not a code saved by CodeMatrix.save: {error}") from error
        if str(content.get("format", "")) != _FORMAT:
            raise ValueError(f"{path} is not a code saved by CodeMatrix.save: it holds {sorted(content)}.")
        if int(content["version"]) != _VERSION:
            raise ValueError(
                f"{path} has format version {content['version']}; this nary reads version {_VERSION}. "
                "Load it with the nary that saved it, or save it again."
            )
        if "symbols" in content:
            return cls(content["symbols"], content["alphabet"])
        K, L = (int(size) for size in content["shape"])
        used = (content["classes"], content["columns"], content["used_symbols"])
        return cls.from_entries(*used, n_classes=K, n_columns=L, alphabet=content["alphabet"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CodeMatrix):
            return NotImplemented
        mine, others = (code._key() for code in (self, other))
        return self.shape == other.shape and all(np.array_equal(a, b) for a, b in zip(mine, others, strict=True))

    def __hash__(self) -> int:
        return hash((self.shape, *(array.tobytes() for array in self._key())))

    def _key(self) -> tuple[NDArray[np.integer], ...]:
        form = (self._starts, self._classes, self._used_symbols)
        return (self._alphabet, *form) if self._dense is None else (self._alphabet, self._dense)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.symbols, dtype=dtype, copy=None if copy is not True else True)

    def __copy__(self) -> CodeMatrix:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CodeMatrix:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._freeze()

    def __repr__(self) -> str:
        sizes = sorted(set(self.alphabet.tolist()))
        symbols = sizes[0] if len(sizes) == 1 else f"{sizes[0]}..{sizes[-1]}"
        unused = "" if self.is_full else f", unused={1 - self.n_used / (self.n_classes * self.n_columns):.0%}"
        return f"CodeMatrix(n_classes={self.n_classes}, n_columns={self.n_columns}, n_symbols={symbols}{unused})"

    def _repr_html_(self) -> str:
        """The upper left corner of the code, for notebooks."""
        rows, columns = min(self.n_classes, 12), min(self.n_columns, 24)
        corner = self.block(0, columns)[:rows]
        more = (["&hellip;"] if columns < self.n_columns else [], rows < self.n_classes)
        lines = ["<tr><th></th>" + "".join(f"<th>{s}</th>" for s in range(columns)) + "</tr>"]
        for c, word in enumerate(corner):
            cells = ["&middot;" if symbol == UNUSED else str(symbol) for symbol in word] + more[0]
            lines.append(f"<tr><th>{c}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        if more[1]:
            lines.append(f"<tr><td colspan='{columns + 1}'>&hellip; {self.n_classes - rows} more classes</td></tr>")
        return f"<div><p>{escape(repr(self))}</p><table>{''.join(lines)}</table></div>"


@dataclass(frozen=True)
class CodeSummary:
    """What `CodeMatrix.summary` found; None where the code is too large to measure all pairs."""

    n_classes: int
    n_columns: int
    alphabet_range: tuple[int, int]
    used: float
    min_hamming: float | None
    mean_hamming: float | None
    min_absolute: float | None
    mean_absolute: float | None
    mean_absolute_correlation: float | None

    def __str__(self) -> str:
        low, high = self.alphabet_range
        symbols = f"{low}" if low == high else f"{low} to {high}"

        def text(value: float | None) -> str:
            return "not measured (too large)" if value is None else f"{value:.4g}"

        lines = [
            f"{plural(self.n_classes, 'class', 'classes')}, {plural(self.n_columns, 'column')}, {symbols} symbols, "
            f"{self.used:.1%} of the entries used",
            f"Hamming distance:  min (rho) {text(self.min_hamming)}, mean {text(self.mean_hamming)}",
            f"absolute distance: min (rho) {text(self.min_absolute)}, mean {text(self.mean_absolute)}",
            f"mean |correlation| between columns: {text(self.mean_absolute_correlation)}",
        ]
        return "\n".join(lines)


def _integers(values: ArrayLike, what: str) -> NDArray[np.int64]:
    """`values` as int64, refusing what is not a whole number."""
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{what} must be a rectangular array of integers; {error}.") from error
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold integers; got an array of {given.dtype}. Number the symbols from 0.")
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if given.dtype.kind == "f" and not np.array_equal(whole, given):
        wrong = given[whole != given].flat[0]
        raise ValueError(f"{what} must hold integers; got {wrong}. Symbols are the numbers 0..N-1, or -1 for UNUSED.")
    return whole


def _ascending(major: NDArray[np.int64], minor: NDArray[np.int64]) -> bool:
    steps = np.diff(major)
    return bool(((steps > 0) | ((steps == 0) & (np.diff(minor) >= 0))).all())


def _column_ranges(
    symbols: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each column's smallest and largest symbol; refuses columns that no class uses."""
    sizes = np.diff(starts)
    if (sizes == 0).any():
        empty = np.flatnonzero(sizes == 0)
        raise ValueError(
            f"every column must be used by at least two classes; no class uses column {empty[0]} "
            f"({plural(int(empty.size), 'such column')}). Remove it."
        )
    return np.minimum.reduceat(symbols, starts[:-1]), np.maximum.reduceat(symbols, starts[:-1])


def _alphabet(alphabet: ArrayLike | None, high: NDArray[np.int64], n_columns: int) -> NDArray[np.int16]:
    """The number of symbols of each column."""
    if alphabet is None:
        sizes = high + 1
    else:
        sizes = _integers(alphabet, "alphabet")
        if sizes.shape not in ((), (n_columns,)):
            raise ValueError(
                f"alphabet must be one number or one for each of the {n_columns} columns; got shape {sizes.shape}."
            )
        sizes = np.broadcast_to(sizes, (n_columns,))
    if sizes.size and (sizes.max() > MAX_SYMBOLS or (alphabet is not None and sizes.min() < 2)):
        raise ValueError(
            f"a column must have 2 to {MAX_SYMBOLS} symbols; got {sizes.min()} to {sizes.max()}. "
            "Number the symbols of a column from 0 without gaps."
        )
    return sizes.astype(np.int16)


def _check_symbols(
    classes: NDArray[np.int64],
    columns: NDArray[np.int64],
    symbols: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    alphabet: NDArray[np.int16],
) -> None:
    """Refuses symbols out of range, entries given twice and constant columns."""
    wrong = (symbols < 0) | (symbols >= alphabet[columns])
    if wrong.any():
        e = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"symbols of column {columns[e]} must lie in 0..{alphabet[columns[e]] - 1}, or be -1 (UNUSED); class "
            f"{classes[e]} has {symbols[e]}. Give a larger alphabet, or number the symbols from 0."
        )
    twice = (np.diff(columns) == 0) & (np.diff(classes) == 0)
    if twice.any():
        e = int(np.flatnonzero(twice)[0])
        raise ValueError(f"an entry may be given once; class {classes[e]} has two symbols in column {columns[e]}.")
    if (low == high).any():
        s = int(np.flatnonzero(low == high)[0])
        signs = (
            " For a matrix of -1 and +1 use CodeMatrix.from_signs." if (low == high).all() and high.max() == 1 else ""
        )
        raise ValueError(
            f"every column must give at least two classes different symbols; all classes that use column {s} have "
            f"symbol {low[s]}. Remove the column.{signs}"
        )


def _check_codewords(
    classes: NDArray[np.int64], columns: NDArray[np.int64], symbols: NDArray[np.int64], n_classes: int
) -> None:
    """Refuses two classes with the same codeword."""
    keys = (columns << 16 | symbols).astype(np.uint64)
    marks = np.zeros(n_classes, np.uint64)
    with np.errstate(over="ignore"):
        keys = (keys + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        np.add.at(marks, classes, keys ^ (keys >> np.uint64(32)))  # a sum of hashes: equal words have equal marks
    order = np.argsort(marks, kind="stable")
    same = np.flatnonzero(marks[order][1:] == marks[order][:-1])
    for a, b in zip(order[same], order[same + 1], strict=True):
        words = [(columns[classes == c], symbols[classes == c]) for c in (a, b)]
        if all(np.array_equal(x, y) for x, y in zip(*words, strict=True)):
            raise ValueError(
                f"every class must have a codeword of its own; classes {min(a, b)} and {max(a, b)} have the same. "
                "Change one of the rows, or add a column that tells the two classes apart."
            )
