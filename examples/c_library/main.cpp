// The same library in C++: cmake -B build -DCMAKE_PREFIX_PATH=FOLDER_OF_THE_LIBRARY && cmake --build build
#include <model.h>

#include <array>
#include <iostream>
#include <memory>

int main() {
  const std::array<float, 3> x = {1, 2, 3};
  const std::array<float, 6> w = {1, 0, 0, 1, 1, 1};
  const std::array<std::int64_t, 2> x_sizes = {1, 3};
  std::array<std::int64_t, 2> y_sizes;
  float *memory = nullptr;
  if (model_layer(x.data(), x_sizes.data(), w.data(), 2, &memory, y_sizes.data())) {
    std::cerr << "error: " << model_error() << "\n";
    return 1;
  }
  const std::unique_ptr<float, void (*)(void *)> y(memory, model_free);
  std::cout << y_sizes[0] << "x" << y_sizes[1] << ": " << y.get()[0] << " " << y.get()[1] << "\n";
}
