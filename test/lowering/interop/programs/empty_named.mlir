module @nothing attributes {test.a} {
}
