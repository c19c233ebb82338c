// Sums of rows on an OpenCL device that is a CPU stay in its registers, which have 64 bytes, or 32: of eight there are
// eight vectors of 16 floats, or four.
// RUN: devscope lower %s --stage kernels | filecheck %s

// CHECK: gpu.module @wide_
// CHECK: vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: gpu.module @narrow_
// CHECK: iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
#wide = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {vector = 64 : i64}>, "">
#narrow = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {vector = 32 : i64}>, "">
func.func @wide(%x: tensor<64x1024xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %sums = linalg.reduce ins(%x : tensor<64x1024xf32>) outs(%y : tensor<64xf32>) dimensions = [1] {device.scope = #wide}
    (%a: f32, %b: f32) {
      %c = arith.addf %b, %a : f32
      linalg.yield %c : f32
    }
  func.return %sums : tensor<64xf32>
}

func.func @narrow(%x: tensor<64x1024xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %sums = linalg.reduce ins(%x : tensor<64x1024xf32>) outs(%y : tensor<64xf32>) dimensions = [1] {device.scope = #narrow}
    (%a: f32, %b: f32) {
      %c = arith.addf %b, %a : f32
      linalg.yield %c : f32
    }
  func.return %sums : tensor<64xf32>
}
