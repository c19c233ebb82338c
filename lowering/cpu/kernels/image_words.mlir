// Words of the elements of an image, two channels of one pixel each: for %lines lines of %size words, %total in all.
// %least[task]: the least of the bits of all elements but 0 that a task saw, without their signs, less 1.
func.func private @${NAME}(${PARAMETERS}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %step = arith.constant 32 : index
  %tasks = arith.constant ${TASKS} : index
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %ones = arith.constant dense<1> : vector<64xi16>
    %largest = arith.constant dense<-1> : vector<64xi16>
    %lines_before = arith.muli %task, %lines : index
    %first = arith.divui %lines_before, %tasks : index
    %lines_up_to = arith.addi %lines_before, %lines : index
    %behind = arith.divui %lines_up_to, %tasks : index
    %all = scf.for %line = %first to %behind step %1 iter_args(%of_lines = %largest) -> (vector<64xi16>) {
      %begin = arith.muli %line, %size : index
      %rest = arith.subi %total, %begin : index
      %here = arith.minui %size, %rest : index
      %of_line = scf.for %i = %0 to %here step %step iter_args(%so_far = %of_lines) -> (vector<64xi16>) {
        %left = arith.subi %here, %i : index
        %at = arith.addi %begin, %i : index
        ${READ}
        %no_sign = arith.shli %pairs, %ones : vector<64xi16>
        %no_zero = arith.subi %no_sign, %ones : vector<64xi16>
        %less = arith.minui %so_far, %no_zero : vector<64xi16>
        %made = vector.bitcast %pairs : vector<64xi16> to vector<32xi32>
        %some = vector.create_mask %left : vector<32xi1>
        vector.maskedstore %words[%at], %some, %made : ${WORDS}, vector<32xi1>, vector<32xi32>
        scf.yield %less : vector<64xi16>
      }
      scf.yield %of_line : vector<64xi16>
    }
    %of_task = vector.reduction <minui>, %all : vector<64xi16> into i16
    memref.store %of_task, %least[%task] : ${LEAST}
    scf.reduce
  }
  return
}
