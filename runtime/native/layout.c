/* The table from which the loader makes its view of the structs: of each, the fields that it uses. */
#include "runtime.h"

/* Identifies the sources, see compile_native.py. */
const char devscope_sources[] = DEVSCOPE_SOURCES;

const LayoutRow devscope_layout[] = {
    LAYOUT_CONSTANT(Constants, ABI_VERSION),
    LAYOUT_CONSTANT(Constants, RETURNED_BLOCKS),
    LAYOUT_CONSTANT(Constants, DYNAMIC_LOCAL_SIZE),

    LAYOUT_CONSTANT(Origin, ORIGIN_NONE),
    LAYOUT_CONSTANT(Origin, ORIGIN_RUNTIME),
    LAYOUT_CONSTANT(Origin, ORIGIN_DRIVER),

    LAYOUT_CONSTANT(Operation, OPERATION_ALLOC),
    LAYOUT_CONSTANT(Operation, OPERATION_FREE),
    LAYOUT_CONSTANT(Operation, OPERATION_COPY),
    LAYOUT_CONSTANT(Operation, OPERATION_CONSTANT),
    LAYOUT_CONSTANT(Operation, OPERATION_LAUNCH),
    LAYOUT_CONSTANT(Operation, OPERATION_ASSERT),

    LAYOUT_CONSTANT(Code, CODE_BAD_SLOT),
    LAYOUT_CONSTANT(Code, CODE_BAD_KERNEL),
    LAYOUT_CONSTANT(Code, CODE_BAD_ARGUMENT_COUNT),
    LAYOUT_CONSTANT(Code, CODE_BAD_CONSTANT),
    LAYOUT_CONSTANT(Code, CODE_NEGATIVE_SIZE),
    LAYOUT_CONSTANT(Code, CODE_OUT_OF_HOST_MEMORY),
    LAYOUT_CONSTANT(Code, CODE_ASSERTION_FAILED),
    LAYOUT_CONSTANT(Code, CODE_TOO_MUCH_LOCAL_MEMORY),
    LAYOUT_CONSTANT(Code, CODE_TOO_MANY_WORK_ITEMS),
    LAYOUT_CONSTANT(Code, CODE_BAD_LAUNCH_SIZE),

    LAYOUT_FIELD(Error, origin),
    LAYOUT_FIELD(Error, code),
    LAYOUT_FIELD(Error, operation),
    LAYOUT_FIELD(Error, slot),
    LAYOUT_FIELD(Error, detail),
    LAYOUT_FIELD(Error, size),
    LAYOUT_SIZE(Error),

    LAYOUT_SIZE(Block),

    LAYOUT_FIELD(Buffer, memory),
    LAYOUT_SIZE(Buffer),

    LAYOUT_FIELD(Place, offset),
    LAYOUT_FIELD(Place, bytes),
    LAYOUT_SIZE(Place),

    LAYOUT_FIELD(Arena, bytes),
    LAYOUT_FIELD(Arena, separate),
    LAYOUT_FIELD(Arena, places),
    LAYOUT_FIELD(Arena, place_count),
    LAYOUT_SIZE(Arena),

    LAYOUT_FIELD(LiveList, count),
    LAYOUT_SIZE(LiveList),

    LAYOUT_FIELD(FreeList, count),
    LAYOUT_FIELD(FreeList, capacity),
    LAYOUT_FIELD(FreeList, bytes),
    LAYOUT_FIELD(FreeList, limit),
    LAYOUT_SIZE(FreeList),

    LAYOUT_FIELD(Constant, data),
    LAYOUT_FIELD(Constant, bytes),
    LAYOUT_SIZE(Constant),

    LAYOUT_FIELD(Kernel, handle),
    LAYOUT_FIELD(Kernel, argument_count),
    LAYOUT_FIELD(Kernel, sizes),
    LAYOUT_FIELD(Kernel, local_count),
    LAYOUT_SIZE(Kernel),

    LAYOUT_FIELD(Driver, layout),
    LAYOUT_SIZE(Driver),

    LAYOUT_FIELD(Counters, launches),
    LAYOUT_FIELD(Counters, allocations),
    LAYOUT_FIELD(Counters, driver_allocations),
    LAYOUT_SIZE(Counters),

    LAYOUT_FIELD(Device, driver),
    LAYOUT_FIELD(Device, state),
    LAYOUT_FIELD(Device, domain),
    LAYOUT_FIELD(Device, kernel_count),
    LAYOUT_FIELD(Device, kernels),
    LAYOUT_STRUCT_FIELD(Device, free_list, FreeList),
    LAYOUT_STRUCT_FIELD(Device, live, LiveList),
    LAYOUT_STRUCT_FIELD(Device, counters, Counters),
    LAYOUT_FIELD(Device, most_work_items),
    LAYOUT_FIELD(Device, most_local),
    LAYOUT_SIZE(Device),

    LAYOUT_FIELD(Traffic, copies),
    LAYOUT_FIELD(Traffic, bytes),
    LAYOUT_SIZE(Traffic),

    LAYOUT_STRUCT_FIELD(Context, error, Error),
    LAYOUT_FIELD(Context, device_count),
    LAYOUT_FIELD(Context, devices),
    LAYOUT_FIELD(Context, constant_count),
    LAYOUT_FIELD(Context, constants),
    LAYOUT_FIELD(Context, traffic),
    LAYOUT_FIELD(Context, arenas),
    LAYOUT_FIELD(Context, returned_count),
    LAYOUT_FIELD(Context, returned),
    LAYOUT_SIZE(Context),

    {0},
};
