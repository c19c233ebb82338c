func.func @f(%v: vector<4xf32>, %m: memref<8xf32>, %i: index) -> f32 {
  %p = arith.constant 0.0 : f32
  %r = vector.transfer_read %m[%i], %p {in_bounds = [true]} : memref<8xf32>, vector<4xf32>
  %s = vector.contract {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
      iterator_types = ["reduction"], kind = #vector.kind<maximumf>} %r, %v, %p : vector<4xf32>, vector<4xf32> into f32
  %t = vector.shuffle %r, %v [0, 5, 2, 7] : vector<4xf32>, vector<4xf32>
  %u = vector.reduction <add>, %t, %s fastmath<reassoc> : vector<4xf32> into f32
  return %u : f32
}
