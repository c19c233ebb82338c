"""LLVM IR of a host function that has cuBLASLt enqueue one product.

cuBLASLt counts columns first. A matrix that stands in rows is its transposed one to it, so that it is asked for
``c^T = b^T a^T``: its first factor is ``b``.
"""

from __future__ import annotations

import struct

from devscope.analysis.patterns import Match, op_name, splat_value, transposes
from devscope.backends.backend import Claimed, LlvmIr
from devscope.backends.contractions import element_of, is_zero, operand_of, product_of, rank_of

MOST_MATRICES = 2**31 - 1
"""Of a batch: cuBLASLt counts them with 32 bits."""

# cudaDataType_t, cublasComputeType_t, cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
# cublasLtEpilogue_t and cublasStatus_t of cublasLt.h.
_TYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 14}
_COMPUTE_F32, _COMPUTE_F64, _COMPUTE_TF32 = 68, 70, 77
_TRANSPOSES = (3, 4)
_EPILOGUE, _BIAS_POINTER = 7, 8
_BATCH_COUNT, _BATCH_STRIDE = 5, 6
_ADD_BIAS = 4
_NOT_SUPPORTED = 15

_FUNCTIONS = {
    "cublasLtCreate": "ptr",
    "cublasLtDestroy": "ptr",
    "cublasLtMatmulDescCreate": "ptr, i32, i32",
    "cublasLtMatmulDescSetAttribute": "ptr, i32, ptr, i64",
    "cublasLtMatmulDescDestroy": "ptr",
    "cublasLtMatrixLayoutCreate": "ptr, i32, i64, i64, i64",
    "cublasLtMatrixLayoutSetAttribute": "ptr, i32, ptr, i64",
    "cublasLtMatrixLayoutDestroy": "ptr",
    "cublasLtMatmul": "ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, ptr",
}

_NUMBERS = {"f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat", "index": "i64"}


class Call:
    """The function gets the queue, then of each operand and of the result its address and its sizes."""

    def __init__(self, function: Claimed, match: Match, tf32: bool) -> None:
        self.function, self.match, self.tf32 = function, match, tf32
        self.product = product_of(match)
        self.element, self.made = element_of(self.product.operands[0]), element_of(self.product.results[0])
        self.name = f"{function.name}_cublas"
        self.lines: list[str] = []
        self.blocks = 0

    # ------------------------------------------------------------------------------------------- text

    def new(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def room(self, type_: str, value: str) -> str:
        """The address of a variable."""
        address = self.new(f"alloca {type_}")
        self.lines.append(f"  store {type_} {value}, ptr {address}")
        return address

    def stop_unless(self, condition: str, status: str) -> None:
        """What follows is done only if a condition holds."""
        self.blocks += 1
        self.lines.append(f"  store i32 {status}, ptr %status")
        self.lines.append(f"  br i1 {condition}, label %b{self.blocks}, label %done")
        self.lines.append(f"b{self.blocks}:")

    def checked(self, function: str, *values: str) -> None:
        given = ", ".join(
            f"{kind} {value}" for kind, value in zip(_FUNCTIONS[function].split(", "), values, strict=True)
        )
        status = self.new(f"call i32 @{function}({given})")
        self.stop_unless(self.new(f"icmp eq i32 {status}, 0"), status)

    def load(self, address: str) -> str:
        return self.new(f"load ptr, ptr {address}")

    # ------------------------------------------------------------------------------------------- the function

    def code(self) -> LlvmIr:
        types = [type_.removeprefix("memref<").removesuffix(">") for type_ in self.function.buffers]
        parameters = ["ptr %queue"]
        for number, (type_, full) in enumerate(zip(types, self.function.buffers, strict=True)):
            if type_ == full:
                parameters.append(f"{_NUMBERS.get(type_, type_)} %a{number}")
                continue
            parameters.append(f"ptr %a{number}")
            parameters += [f"i64 %a{number}_{axis}" for axis in range(type_.count("x"))]
        self._write()
        declared = "".join(f"declare i32 @{name}({types})\n" for name, types in _FUNCTIONS.items())
        destroyed = "".join(
            f"  %h{number} = load ptr, ptr %{name}\n  %g{number} = icmp ne ptr %h{number}, null\n"
            f"  br i1 %g{number}, label %d{number}, label %n{number}\nd{number}:\n"
            f"  call i32 @{function}(ptr %h{number})\n  br label %n{number}\nn{number}:\n"
            for number, (name, function) in enumerate(_MADE.items())
        )
        made = "".join(f"  %{name} = alloca ptr\n  store ptr null, ptr %{name}\n" for name in _MADE)
        body = "\n".join(self.lines)
        return LlvmIr(
            f"""{declared}@{self.name}_handle = internal global ptr null
define i32 @{self.name}({", ".join(parameters)}) {{
{made}  %status = alloca i32
{body}
  br label %done
done:
{destroyed}  %s = load i32, ptr %status
  ret i32 %s
}}
define void @{self.name}_close() {{
  %h = load ptr, ptr @{self.name}_handle
  %c = icmp ne ptr %h, null
  br i1 %c, label %destroy, label %done
destroy:
  call i32 @cublasLtDestroy(ptr %h)
  store ptr null, ptr @{self.name}_handle
  br label %done
done:
  ret void
}}
""",
            self.name,
            calls=list(_FUNCTIONS),
            close=f"{self.name}_close",
        )

    def _write(self) -> None:
        name, c = op_name(self.product), len(self.function.buffers) - 1
        batch = 1 if name == "linalg.batch_matmul" else 0
        own = transposes(self.product) or (False, False)
        (a, a_before), (b, b_before) = (operand_of(self.function, self.product.operands[at]) for at in (0, 1))
        turned = [b_before != own[1], a_before != own[0]]
        rank = rank_of(self.product.operands[0])
        k = f"%a{a}_{batch + (0 if turned[1] or rank == 1 else 1)}"
        m = "1" if name == "linalg.vecmat" else f"%a{c}_{batch}"
        n = {"linalg.matvec": "1", "linalg.vecmat": f"%a{c}_0"}.get(name, f"%a{c}_{batch + 1}")
        count = f"%a{c}_0" if batch else "1"
        self._refuse_sizes(m, n, count, batch)
        is_f64 = self.element == "f64"
        compute = (
            _COMPUTE_F64 if is_f64 else _COMPUTE_TF32 if self.tf32 and self.element == "f32" else _COMPUTE_F32
        )
        self.checked("cublasLtMatmulDescCreate", "%desc", str(compute), str(_TYPES["f64" if is_f64 else "f32"]))
        desc = self.load("%desc")
        for attribute, is_turned in zip(_TRANSPOSES, turned, strict=True):
            if is_turned:
                self._set("Desc", desc, attribute, "i32", "1")
        added, beta = self._added(desc, c)
        # What stands in rows of `width` is `width` x `height` to cuBLASLt.
        for layout, (height, width), type_ in (
            ("%layout_b", (n, k) if turned[0] else (k, n), self.element),
            ("%layout_a", (k, m) if turned[1] else (m, k), self.element),
            ("%layout_c", (m, n), self.made),
        ):
            self.checked("cublasLtMatrixLayoutCreate", layout, str(_TYPES[type_]), width, height, width)
            if batch:
                one = self.load(layout)
                self._set("Layout", one, _BATCH_COUNT, "i32", self.new(f"trunc i64 {count} to i32"))
                self._set("Layout", one, _BATCH_STRIDE, "i64", self.new(f"mul i64 {height}, {width}"))
        factor = splat_value(self.match["factor"]) if "factor" in self.match else 1.0
        assert isinstance(factor, int | float)
        kind = "double" if is_f64 else "float"
        alpha, beta_at = (self.room(kind, _literal(number, is_f64)) for number in (float(factor), beta))
        handle = self._handle()
        layouts = [self.load(f"%layout_{one}") for one in "bac"]
        result = f"%a{c}"
        self.checked(
            "cublasLtMatmul",
            *(handle, desc, alpha, f"%a{b}", layouts[0], f"%a{a}", layouts[1], beta_at),
            *(added, layouts[2], result, layouts[2], "null", "null", "0", "%queue"),
        )

    def _refuse_sizes(self, m: str, n: str, count: str, batch: int) -> None:
        """There is nothing to do for an empty result; a batch may be too large."""
        product = "1"
        for size in (m, n, count):
            product = self.new(f"mul i64 {product}, {size}")
        self.stop_unless(self.new(f"icmp ne i64 {product}, 0"), "0")
        if batch:
            self.stop_unless(self.new(f"icmp sle i64 {count}, {MOST_MATRICES}"), str(_NOT_SUPPORTED))

    def _set(self, what: str, handle: str, attribute: int, type_: str, value: str) -> None:
        name = {"Desc": "cublasLtMatmulDescSetAttribute", "Layout": "cublasLtMatrixLayoutSetAttribute"}[what]
        size = "4" if type_ == "i32" else "8"
        self.checked(name, handle, str(attribute), self.room(type_, value), size)

    def _added(self, desc: str, result: int) -> tuple[str, float]:
        """The address of the matrix that is added, and the factor of it; a row is added by the epilogue."""
        added = self.match["bias"] if "bias" in self.match else self.match["init"]
        if "bias" not in self.match and is_zero(added):
            return f"%a{result}", 0.0
        address = f"%a{self.function.operand(added)}"
        if rank_of(added) == rank_of(self.product.results[0]):
            return address, 1.0
        self._set("Desc", desc, _EPILOGUE, "i32", str(_ADD_BIAS))
        self._set("Desc", desc, _BIAS_POINTER, "ptr", address)
        return f"%a{result}", 0.0

    def _handle(self) -> str:
        """Made by the first call."""
        place = f"@{self.name}_handle"
        is_made = self.new(f"icmp ne ptr {self.load(place)}, null")
        self.blocks += 1
        number = self.blocks
        self.lines.append(f"  br i1 {is_made}, label %there{number}, label %make{number}\nmake{number}:")
        self.checked("cublasLtCreate", place)
        self.lines.append(f"  br label %there{number}\nthere{number}:")
        return self.load(place)


_MADE = {
    "layout_a": "cublasLtMatrixLayoutDestroy",
    "layout_b": "cublasLtMatrixLayoutDestroy",
    "layout_c": "cublasLtMatrixLayoutDestroy",
    "desc": "cublasLtMatmulDescDestroy",
}
"""What a call makes and destroys, by the variables that have it."""


def _literal(number: float, double: bool) -> str:
    """As LLVM writes it: the bits of a double, which a float must have exactly."""
    exact = number if double else struct.unpack("f", struct.pack("f", number))[0]
    return f"0x{struct.unpack('Q', struct.pack('d', exact))[0]:016X}"
