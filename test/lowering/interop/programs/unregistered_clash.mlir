// One name for a property and for an attribute of an operation that MLIR does not know; xDSL knows test.op and
// gives some of these names a meaning.
"test.op"() <{prop1 = 1 : i32, p = 2 : i64}> {p = 3 : i8, q = "x", prop2 = unit} : () -> ()
"riscv.li"() {immediate = 5 : i32} : () -> ()
