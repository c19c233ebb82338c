module @outer attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i64>, test.list = []} {
  module @inner attributes {test.x = 1 : i32, sym_visibility = "private"} {
    func.func private @g(i32 {llvm.noundef}, tensor<2xf32, "encoded">) -> (i32 {llvm.signext})
  }
  module {
    func.func @"odd name \22quoted\22"() {
      return
    }
    func.func @caller() {
      func.call @"odd name \22quoted\22"() : () -> ()
      return
    }
  }
}
