memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]> {alignment = 64 : i64}
memref.global @unset : memref<3xi8> = uninitialized
func.func @f(%m: memref<9x9xf32, strided<[?, 1], offset: ?>>, %i: index) -> memref<3x3xf32, strided<[?, 1], offset: ?>> {
  %s = memref.subview %m[%i, %i] [3, 3] [1, 1] : memref<9x9xf32, strided<[?, 1], offset: ?>> to memref<3x3xf32, strided<[?, 1], offset: ?>>
  %a = memref.alloc() {alignment = 128 : i64} : memref<3x3xf32, 3>
  %b = memref.alloca(%i) : memref<?xf32, affine_map<(d0) -> (d0 * 2 + 1)>, #gpu.address_space<workgroup>>
  memref.copy %s, %a : memref<3x3xf32, strided<[?, 1], offset: ?>> to memref<3x3xf32, 3>
  memref.dealloc %a : memref<3x3xf32, 3>
  %g = memref.get_global @table : memref<2xf32>
  %c = memref.reinterpret_cast %g to offset: [1], sizes: [1], strides: [1] : memref<2xf32> to memref<1xf32, strided<[1], offset: 1>>
  %u = memref.cast %g : memref<2xf32> to memref<*xf32>
  return %s : memref<3x3xf32, strided<[?, 1], offset: ?>>
}
