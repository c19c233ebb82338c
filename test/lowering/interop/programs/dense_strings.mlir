"test.op"() {a = dense<["one", "two"]> : tensor<2x!test.string>, b = dense<"all"> : tensor<40x!test.string>} : () -> ()
