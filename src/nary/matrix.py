"""CodeMatrix: the value every design makes and every stage reads; its validity, its distances, its file form."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from . import _validity, measures
from ._check import integer, plural
from ._validity import MAX_SYMBOLS, UNUSED

__all__ = ["MAX_SYMBOLS", "UNUSED", "CodeMatrix", "CodeSummary"]

_SPARSE_BELOW = 0.25  # share of used entries under which the sparse form is the smaller one
_FORMAT = "nary.CodeMatrix"
_VERSION = 1
_VERSIONED = {"format", "version", "alphabet"}
_IMMUTABLE = "a CodeMatrix cannot be changed. Make a new one of changed symbols: CodeMatrix(symbols, alphabet)."
_LIKE_SIGNS = (
    "a code matrix of -1, 0 and 1 was read with -1 for UNUSED and the symbols 0 and 1. Where -1 and +1 are the symbols "
    "and 0 means unused, use CodeMatrix.from_signs; otherwise give CodeMatrix(symbols, alphabet=2)."
)
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

    -1 means UNUSED. In much of the literature a matrix of -1, 0 and +1 has the symbols -1 and +1, and 0 is unused: that
    is what `from_signs` reads. A matrix of just these three values draws a warning unless `alphabet` is given.

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
        dense = _validity.integers(symbols, "a code matrix")
        like_signs = dense.ndim == 2 and bool(dense.size) and (dense.min(), dense.max()) == (UNUSED, 1)
        if like_signs and not (dense == 0).any():
            raise ValueError(
                "every column must give at least two classes different symbols; got only -1 (UNUSED) and 1. "
                "For a matrix of -1 and +1 use CodeMatrix.from_signs."
            )
        try:
            self._set_dense(dense, alphabet)
        except ValueError as error:
            if like_signs:
                raise ValueError(f"{error} Where -1 and +1 are the symbols use CodeMatrix.from_signs.") from error
            raise
        if like_signs and alphabet is None:
            warnings.warn(_LIKE_SIGNS, UserWarning, stacklevel=2)

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
        given = {"classes": classes, "columns": columns, "symbols": symbols}
        *at, said = (_validity.integers(values, name).ravel().astype(np.int64) for name, values in given.items())
        if not at[0].size == at[1].size == said.size:
            raise ValueError(
                "classes, columns and symbols must have the same length; got "
                f"{at[0].size}, {at[1].size} and {said.size}. Give one of each for every used entry."
            )
        for values, name, high in ((at[0], "classes", shape[0]), (at[1], "columns", shape[1])):
            if values.size and (values.min() < 0 or values.max() >= high):
                raise ValueError(f"{name} must lie in 0..{high - 1}; got {values.min()}..{values.max()}.")
        code = cls.__new__(cls)
        order = np.lexsort((at[0], at[1])) if not _validity.ascending(at[1], at[0]) else slice(None)
        code._set(at[0][order], at[1][order], said[order], shape, alphabet)
        return code

    @classmethod
    def from_signs(cls, signs: ArrayLike) -> CodeMatrix:
        """A binary or ternary code in the usual notation: -1 and +1 for the two symbols, 0 for UNUSED."""
        given = _validity.integers(signs, "a matrix of signs")
        if given.size and (given.min() < -1 or given.max() > 1):
            raise ValueError(f"signs must be -1, 0 or +1; got values from {given.min()} to {given.max()}.")
        code = cls.__new__(cls)
        code._set_dense(np.where(given == 0, np.int8(UNUSED), (given > 0).astype(np.int8)), 2)
        return code

    @classmethod
    def from_one_based(cls, symbols: ArrayLike, alphabet: ArrayLike | None = None) -> CodeMatrix:
        """A code in the paper's notation: symbols 1..N, and 0 for UNUSED."""
        given = _validity.integers(symbols, "a code matrix")
        if given.size and given.min() < 0:
            raise ValueError(f"symbols counted from 1 must be at least 0 (0: unused); got {given.min()}.")
        code = cls.__new__(cls)
        code._set_dense(np.subtract(given, 1, dtype=np.promote_types(given.dtype, np.int16)), alphabet)
        return code

    def _set_dense(self, dense: NDArray[np.signedinteger[Any]], alphabet: ArrayLike | None) -> None:
        """Checks a whole matrix and keeps it in the smaller form; of a full one no list of entries is made."""
        if dense.ndim != 2 or dense.shape[0] < 2 or dense.shape[1] < 1:
            raise ValueError(
                "a code matrix must have shape (n_classes, n_columns) with at least 2 classes and 1 column; got shape "
                f"{dense.shape}. Give one row of symbols for each class."
            )
        K, L = dense.shape
        users = np.count_nonzero(dense != UNUSED, axis=0)
        if users.sum() < _SPARSE_BELOW * K * L:
            columns, classes = np.nonzero(dense.T != UNUSED)
            self._set(classes, columns, dense[classes, columns].astype(np.int64), (K, L), alphabet)
            return
        ranges = _validity.matrix_ranges(dense, users)
        sizes = _validity.alphabet_sizes(alphabet, ranges[1], L)
        _validity.check_matrix(dense, ranges, sizes)
        kept = np.array(dense, np.int16, order="C")
        _validity.check_rows(kept)
        self._keep(K, sizes, dense=kept)

    def _set(
        self,
        classes: NDArray[np.int64],
        columns: NDArray[np.int64],
        symbols: NDArray[np.int64],
        shape: tuple[int, int],
        alphabet: ArrayLike | None,
    ) -> None:
        """Checks the used entries, sorted by column and class, and keeps them in the smaller form."""
        K, L = shape
        starts = np.searchsorted(columns, np.arange(L + 1)).astype(np.int64)
        ranges = _validity.column_ranges(symbols, starts)
        sizes = _validity.alphabet_sizes(alphabet, ranges[1], L)
        _validity.check_entries(classes, columns, symbols, ranges, sizes)
        _validity.check_codewords(classes, columns, symbols, K)
        if symbols.size < _SPARSE_BELOW * K * L:
            self._keep(K, sizes, starts, classes.astype(np.int32), symbols.astype(np.int16))
        else:
            dense = np.full((K, L), UNUSED, np.int16)
            dense[classes, columns] = symbols
            self._keep(K, sizes, dense=dense)

    def _keep(
        self,
        n_classes: int,
        alphabet: NDArray[np.int16],
        starts: NDArray[np.int64] | None = None,
        classes: NDArray[np.int32] | None = None,
        used_symbols: NDArray[np.int16] | None = None,
        dense: NDArray[np.int16] | None = None,
    ) -> None:
        """The only place where a code gets its content, once."""
        if hasattr(self, "_n_classes"):
            raise AttributeError(_IMMUTABLE)
        content = {
            "_n_classes": n_classes,
            "_alphabet": _frozen(alphabet),
            "_starts": _frozen(np.empty(0, np.int64) if starts is None else starts),
            "_classes": _frozen(np.empty(0, np.int32) if classes is None else classes),
            "_used_symbols": _frozen(np.empty(0, np.int16) if used_symbols is None else used_symbols),
            "_dense": None if dense is None else _frozen(dense),
        }
        for name, value in content.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(_IMMUTABLE)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(_IMMUTABLE)

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
        if not 0 <= first <= last <= self.n_columns:
            raise IndexError(f"columns must lie within 0:{self.n_columns}; got {first}:{last}.")
        if self._dense is not None:
            return np.asarray(self._dense[:, first:last])
        begin, end = self._starts[first], self._starts[last]
        out = np.full((self.n_classes, last - first), UNUSED, np.int16)
        columns = np.repeat(np.arange(last - first), np.diff(self._starts[first : last + 1]))
        out[self._classes[begin:end], columns] = self._used_symbols[begin:end]
        return out

    def column(self, s: int) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
        """The classes that take part in column s, ascending, and their symbols."""
        if not 0 <= s < self.n_columns:
            raise IndexError(f"a column is a number from 0 to {self.n_columns - 1}; got {s}.")
        if self._dense is not None:
            classes = np.flatnonzero(self._dense[:, s] != UNUSED).astype(np.int32)
            return classes, self._dense[classes, s]
        begin, end = self._starts[s], self._starts[s + 1]
        return self._classes[begin:end], self._used_symbols[begin:end]

    def word(self, c: int) -> NDArray[np.int16]:
        """The codeword of class c: (L,)."""
        if not 0 <= c < self.n_classes:
            raise IndexError(f"a class is a number from 0 to {self.n_classes - 1}; got {c}.")
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

    def block_entries(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int16]]:
        """The used entries of columns first..last-1: where each column's begin and end, their classes and symbols."""
        if self._dense is None:
            starts = self._starts[first : last + 1]
            part = slice(starts[0], starts[-1])
            return starts - starts[0], self._classes[part], self._used_symbols[part]
        block = self.block(first, last)
        columns, classes = np.nonzero(block.T != UNUSED)
        starts = np.searchsorted(columns, np.arange(last - first + 1)).astype(np.int64)
        return starts, classes.astype(np.int32), block[classes, columns]

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
        content = _read_arrays(Path(path))
        if content is None or str(content.get("format", "")) != _FORMAT or not _VERSIONED <= set(content):
            raise ValueError(f"{path} is not a code saved by CodeMatrix.save, or it is damaged. Save the code again.")
        if str(content["version"]) != str(_VERSION):
            raise ValueError(
                f"{path} has format version {content['version']}; this nary reads version {_VERSION}. "
                "Load it with the nary that saved it, or save it again."
            )
        try:
            if "symbols" in content:
                return cls(content["symbols"], content["alphabet"])
            K, L = (int(size) for size in content["shape"])
            used = (content["classes"], content["columns"], content["used_symbols"])
            return cls.from_entries(*used, n_classes=K, n_columns=L, alphabet=content["alphabet"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a code saved by CodeMatrix.save, or it is damaged: {error}.") from error

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
        if copy is False and self._dense is None:
            raise ValueError("a sparse code has no array to give without a copy. Ask for one with copy=None or True.")
        return np.array(self.symbols, dtype=dtype, copy=copy)

    def __copy__(self) -> CodeMatrix:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CodeMatrix:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._keep(**{name.removeprefix("_"): value for name, value in state.items()})

    def __repr__(self) -> str:
        sizes = sorted(set(self.alphabet.tolist()))
        symbols = sizes[0] if len(sizes) == 1 else f"{sizes[0]}..{sizes[-1]}"
        unused = "" if self.is_full else f", unused={_share(self.n_classes * self.n_columns - self.n_used, self)}"
        return f"CodeMatrix(n_classes={self.n_classes}, n_columns={self.n_columns}, n_symbols={symbols}{unused})"

    def _repr_html_(self) -> str:
        """The upper left corner of the code, for notebooks."""
        rows, columns = min(self.n_classes, 12), min(self.n_columns, 24)
        corner = self.block(0, columns)[:rows]
        more = (["&hellip;"] if columns < self.n_columns else [], rows < self.n_classes)
        heads = "".join(f"<th>{s}</th>" for s in range(columns)) + "".join(f"<th>{dots}</th>" for dots in more[0])
        lines = [f"<tr><th></th>{heads}</tr>"]
        for c, word in enumerate(corner):
            cells = ["&middot;" if symbol == UNUSED else str(symbol) for symbol in word] + more[0]
            lines.append(f"<tr><th>{c}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        if more[1]:
            span = columns + 1 + len(more[0])
            lines.append(f"<tr><td colspan='{span}'>&hellip; {self.n_classes - rows} more classes</td></tr>")
        return f"<div><p>{escape(repr(self))}</p><table>{''.join(lines)}</table></div>"


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A view of an array that is read-only itself: nobody who holds the view can make it writeable."""
    array = array if array.base is None else array.copy()
    array.flags.writeable = False
    return array.view()


def _share(n_entries: int, code: CodeMatrix) -> str:
    """A share of the entries in percent, with so many digits that neither nearly all nor hardly any reads as such."""
    share = n_entries / (code.n_classes * code.n_columns)
    texts = (f"{share:.{digits}%}" for digits in range(17))
    return next(text for text in texts if share in (0, 1) or 0 < float(text[:-1]) < 100)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays of an .npz file; None for a file that is none, or damaged."""
    with path.open("rb") as file:  # a file that cannot be opened is the caller's error, with its own text
        try:
            with np.load(file, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
        except Exception:  # a damaged archive fails in a dozen ways: zip, zlib, header and struct errors
            return None


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
