"""Reads LLVM IR from stdin, writes SPIR-V to stdout.

A process of its own, for one module: LLVM's SPIR-V backend is not re-entrant.
"""

import sys

import llvmlite.binding as llvm

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple("spirv64-unknown-unknown").create_target_machine(opt=2)
module = llvm.parse_assembly(sys.stdin.read())
module.triple = machine.triple
module.data_layout = str(machine.target_data)
module.verify()
sys.stdout.buffer.write(machine.emit_object(module))
