#set = affine_set<(d0)[s0] : (d0 - 3 >= 0, -d0 + s0 - 1 >= 0)>
#map = affine_map<(d0, d1)[s0] -> (d0 floordiv 4 + s0, d1 mod 8, (d0 ceildiv 2) * -3)>
func.func @f(%n: index, %m: memref<?xf32>) {
  affine.for %i = 0 to %n step 2 {
    affine.if #set(%i)[%n] {
      %v = affine.load %m[%i + 1] : memref<?xf32>
      affine.store %v, %m[symbol(%n) - 1] : memref<?xf32>
    } else {
      %v = affine.load %m[%i] : memref<?xf32>
    }
  }
  %q = affine.apply affine_map<(d0)[s0] -> (d0 + s0 * 4)>(%n)[%n]
  %min = affine.min affine_map<(d0) -> (d0, 32)>(%n)
  %max = affine.max affine_map<(d0) -> (d0, 32)>(%n)
  %lin = affine.linearize_index disjoint [%n, %q] by (4, 8) : index
  %lin2 = affine.linearize_index [%n, %q] by (4, 8) : index
  "test.op"() {m = #map, e = affine_map<() -> ()>, s = affine_set<(d0) : (1 == 0)>} : () -> ()
  return
}
