"""What HMMER itself computes after its filters, bit by bit, by ctypes (see `hmmer_library`)."""

import ctypes

import numpy as np

from helpers.hmmer_library import INTEGER, POINTER, HmmerFilters
from mummergpu.hmm.domains.odds import LANES, registers_of
from mummergpu.hmm.proteins import CODES
from mummergpu.runtime.flushed_floats import flushed_floats

FLOAT, BYTE, WORD = ctypes.c_float, ctypes.c_uint8, ctypes.c_int16
E, N, J, B, C, SCALE = range(6)
SPECIALS = 6
UNDERFLOW = -1
MATCH = 1
"""HMMER's number of a match state in a trace."""


class OptimizedProfile(ctypes.Structure):
    """The begin of HMMER's ``P7_OPROFILE``."""

    _fields_ = [
        *[("rbv", POINTER), ("sbv", POINTER), ("tbm_b", BYTE), ("tec_b", BYTE), ("tjb_b", BYTE)],
        *[("scale_b", FLOAT), ("base_b", BYTE), ("bias_b", BYTE)],
        *[("rwv", POINTER), ("twv", POINTER), ("xw", WORD * 8), ("scale_w", FLOAT)],
        *[("base_w", WORD), ("ddbound_w", WORD), ("ncj_roundoff", FLOAT)],
        *[("rfv", ctypes.POINTER(POINTER)), ("tfv", POINTER), ("xf", FLOAT * 8)],
    ]


class Matrix(ctypes.Structure):
    """HMMER's ``P7_OMX``."""

    _fields_ = [
        *[("M", INTEGER), ("L", INTEGER), ("dpf", ctypes.POINTER(POINTER)), ("dpw", POINTER)],
        *[("dpb", POINTER), ("dp_mem", POINTER)],
        *[(name, INTEGER) for name in ("allocR", "validR", "allocQ4", "allocQ8", "allocQ16")],
        *[("ncells", ctypes.c_int64), ("xmx", POINTER), ("x_mem", POINTER), ("allocXR", INTEGER)],
        *[("totscale", FLOAT), ("has_own_scales", INTEGER)],
    ]


class Trace(ctypes.Structure):
    """HMMER's ``P7_TRACE``."""

    _fields_ = [
        *[("N", INTEGER), ("nalloc", INTEGER), ("st", POINTER), ("k", POINTER), ("i", POINTER)],
        *[("pp", POINTER), ("M", INTEGER), ("L", INTEGER), ("ndom", INTEGER)],
        *[(name, POINTER) for name in ("tfrom", "tto", "sqfrom", "sqto", "hmmfrom", "hmmto")],
    ]


class DomainDefinition(ctypes.Structure):
    """The begin of HMMER's ``P7_DOMAINDEF``."""

    _fields_ = [("mocc", POINTER), ("btot", POINTER), ("etot", POINTER)]


def numbers(address, shape, kind=np.float32):
    """Return a copy of numbers in HMMER's memory."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype=kind).reshape(shape).copy()


_SEQUENCE = ctypes.c_char_p, INTEGER
_SIGNATURES = {
    "p7_oprofile_ReconfigUnihit": (INTEGER, POINTER, INTEGER),
    "p7_oprofile_ReconfigMultihit": (INTEGER, POINTER, INTEGER),
    "p7_domaindef_Create": (POINTER, POINTER),
    "p7_domaindef_GrowTo": (INTEGER, POINTER, INTEGER),
    "p7_DomainDecoding": (INTEGER, POINTER, POINTER, POINTER, POINTER),
    "p7_Forward": (INTEGER, ctypes.c_char_p, INTEGER, POINTER, POINTER, POINTER),
    "p7_Backward": (INTEGER, ctypes.c_char_p, INTEGER, POINTER, POINTER, POINTER, POINTER),
    "p7_BackwardParser": (INTEGER, ctypes.c_char_p, INTEGER, POINTER, POINTER, POINTER, POINTER),
    "p7_Decoding": (INTEGER, POINTER, POINTER, POINTER, POINTER),
    "p7_OptimalAccuracy": (INTEGER, POINTER, POINTER, POINTER, POINTER),
    "p7_OATrace": (INTEGER, POINTER, POINTER, POINTER, POINTER),
    "p7_trace_CreateWithPP": (POINTER,),
    "p7_trace_Reuse": (INTEGER, POINTER),
    "p7_Null2_ByExpectation": (INTEGER, POINTER, POINTER, POINTER),
    "p7_trace_Index": (INTEGER, POINTER),
    "p7_StochasticTrace": (INTEGER, POINTER, *_SEQUENCE, POINTER, POINTER, POINTER),
    "p7_Null2_ByTrace": (INTEGER, POINTER, POINTER, INTEGER, INTEGER, POINTER, POINTER),
    "p7_spensemble_Create": (POINTER, INTEGER, INTEGER, INTEGER),
    "p7_spensemble_Add": (INTEGER, POINTER, *5 * [INTEGER]),
    "p7_spensemble_Cluster": (INTEGER, POINTER, FLOAT, INTEGER, INTEGER, FLOAT, FLOAT, POINTER),
    "p7_spensemble_GetClusterCoords": (INTEGER, POINTER, INTEGER, *5 * [POINTER]),
    "esl_randomness_CreateFast": (POINTER, ctypes.c_uint32),
    "esl_randomness_Init": (INTEGER, POINTER, ctypes.c_uint32),
}


class HmmerDomains(HmmerFilters):
    """HMMER's functions after the filters for the first profile of a file."""

    def __init__(self, path, composition):
        super().__init__(path, composition)
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self.profile = ctypes.cast(self._profile, ctypes.POINTER(OptimizedProfile)).contents
        self.registers = registers_of(self._nodes)
        self._matrices = [self._library.p7_omx_Create(self._nodes, 8, 8) for _ in range(2)]
        self._trace = self._library.p7_trace_CreateWithPP()
        random = self._library.esl_randomness_CreateFast(42)
        self._definition = self._library.p7_domaindef_Create(random)

    @property
    def odds(self):
        """The odds of matches by code, and the chances of transitions."""
        rows = [numbers(self.profile.rfv[code], (self.registers, LANES)) for code in range(CODES)]
        return np.stack(rows), numbers(self.profile.tfv, (8 * self.registers, LANES))

    def configure(self, residues, several):
        """Set the chances for sequences of a length, with several hits a sequence or one."""
        mode = "Multihit" if several else "Unihit"
        getattr(self._library, f"p7_oprofile_Reconfig{mode}")(self._profile, residues)

    def grow(self, residues, rows):
        for matrix in self._matrices:
            self._library.p7_omx_GrowTo(matrix, self._nodes, rows, residues)

    def matrix(self, which):
        """The cells (rows, registers, 3, 4) and the special states (rows, 6) of a matrix."""
        matrix = ctypes.cast(self._matrices[which], ctypes.POINTER(Matrix)).contents
        rows = matrix.L + 1
        shape = self.registers, 3, LANES
        cells = [numbers(matrix.dpf[row], shape) for row in range(rows) if row < matrix.validR]
        return np.stack(cells), numbers(matrix.xmx, (rows, SPECIALS)), matrix.has_own_scales

    def run(self, name, codes=None, *others, result=True):
        """Call a function on the profile and the two matrices; return its status and number."""
        score = FLOAT()
        text = () if codes is None else (b"\xff" + codes.tobytes() + b"\xff", codes.size)
        out = (ctypes.byref(score),) if result else ()
        with flushed_floats():
            try:
                status = getattr(self._library, name)(*text, self._profile, *others, *out)
            except SystemError:  # No path emits the sequence; the matrix is filled all the same.
                status = UNDERFLOW
        self.failed = status != 0
        return status, np.float32(score.value)

    def forward(self, codes, parser=False):
        """Fill matrix 0; return the score."""
        self.grow(codes.size, 0 if parser else codes.size)
        name = "p7_ForwardParser" if parser else "p7_Forward"
        return self.run(name, codes, self._matrices[0])[1]

    def backward(self, codes, parser=False):
        """Fill matrix 1 after `forward`; return the score."""
        name = "p7_BackwardParser" if parser else "p7_Backward"
        return self.run(name, codes, *self._matrices)[1]

    def occupancy(self, residues):
        """The sums of begins and ends, and the chance of matches, after both parsers."""
        self._library.p7_domaindef_GrowTo(self._definition, residues)
        self.run("p7_DomainDecoding", None, *self._matrices, self._definition, result=False)
        found = ctypes.cast(self._definition, ctypes.POINTER(DomainDefinition)).contents
        return [numbers(one, residues + 1) for one in (found.btot, found.etot, found.mocc)]

    def decode(self):
        """Write posteriors into matrix 1; return whether it can."""
        return self.run("p7_Decoding", None, *self._matrices, self._matrices[1], result=False)[0]

    def accuracy(self):
        """Fill matrix 0 after `decode`; return the score and the trace's states, nodes, places."""
        _, score = self.run("p7_OptimalAccuracy", None, *self._matrices[::-1])
        self._library.p7_trace_Reuse(self._trace)
        self.run("p7_OATrace", None, *self._matrices[::-1], self._trace, result=False)
        trace = ctypes.cast(self._trace, ctypes.POINTER(Trace)).contents
        kinds = (np.int8, np.int32, np.int32)
        fields = (trace.st, trace.k, trace.i)
        return score, *(
            numbers(one, trace.N, kind) for one, kind in zip(fields, kinds, strict=True)
        )

    def null2(self):
        """The odds of each code after `decode`; row 0 of matrix 1 is overwritten."""
        odds = (FLOAT * CODES)()
        self.run("p7_Null2_ByExpectation", None, self._matrices[1], odds, result=False)
        return np.array(odds, dtype=np.float32)

    def sampled(self, codes, seed, count):
        """Segments of random paths after `forward`, and the sums of the odds of residues."""
        random = self._library.esl_randomness_CreateFast(seed)
        text = b"\xff" + codes.tobytes() + b"\xff"
        totals = np.zeros(codes.size + 1, dtype=np.float32)
        segments = []
        for path in range(count):
            self._library.p7_trace_Reuse(self._trace)
            own = self._profile, self._matrices[0], self._trace
            with flushed_floats():
                self._library.p7_StochasticTrace(random, text, codes.size, *own)
            self._library.p7_trace_Index(self._trace)
            trace = ctypes.cast(self._trace, ctypes.POINTER(Trace)).contents
            names = ("sqfrom", "sqto", "hmmfrom", "hmmto", "tfrom", "tto")
            fields = [numbers(getattr(trace, name), trace.ndom, np.int32) for name in names]
            after = 0
            for *segment, begin, end in zip(*map(np.ndarray.tolist, fields), strict=True):
                segments.append([path, *segment])
                odds = (FLOAT * CODES)()
                own = self._trace, begin, end, self._matrices[1], odds
                with flushed_floats():
                    self._library.p7_Null2_ByTrace(self._profile, *own)
                first, last = segment[:2]
                totals[after + 1 : first + 1] += np.float32(1)
                inside = codes[first:last].astype(int)
                totals[first + 1 : last + 1] += np.array(odds, dtype=np.float32)[inside]
                after = last
            totals[after + 1 :] += np.float32(1)
        return segments, totals

    def clustered(self, segments):
        """The domains of segments, not yet those that hide others: first and last residues."""
        ensemble = self._library.p7_spensemble_Create(1024, 64, 32)
        for one in segments:
            self._library.p7_spensemble_Add(ensemble, *one)
        count = INTEGER()
        limits = 0.8, 1, 4, 0.25, 0.02
        self._library.p7_spensemble_Cluster(ensemble, *limits, ctypes.byref(count))
        found = []
        for one in range(count.value):
            ends = [INTEGER() for _ in range(4)]
            share = FLOAT()
            own = (*map(ctypes.byref, ends), ctypes.byref(share))
            self._library.p7_spensemble_GetClusterCoords(ensemble, one, *own)
            found.append([ends[0].value, ends[1].value, share.value])
        return found


def domains_of(profile, folder):
    """HMMER's functions for a profile."""
    path = folder / "one.hmm"
    with path.open("wb") as file:
        profile.hmm.write(file, binary=True)
    return HmmerDomains(path, profile.composition)
